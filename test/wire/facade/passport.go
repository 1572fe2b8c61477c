package facade

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"portico/mapping"
	"portico/test/wire"
	"portico/upstream/recording"
)

// Fate is what becomes of a field of a request.
type Fate int

// The fates, in the order of the columns of docs/evidence/COMPATIBILITY.md.
const (
	// Passed is a field that the tracker got as the client sent it.
	Passed Fate = iota
	// Defaulted is one that Portico sent although the client did not.
	Defaulted
	// Translated is one that the tracker got in another form or at another place.
	Translated
	// LeftOut is one that the tracker did not get, because leaving it out means the same.
	LeftOut
	// Answered is a request that Portico answered with success by itself.
	Answered
	// RefusedHere is a request that Portico refused for the field.
	RefusedHere
	// RefusedThere is one that the tracker refused for the field.
	RefusedThere
	fates
)

// The rows of a table that are no fields.
const (
	others  = "(others)"
	request = "(request)"
)

// Row counts the fates of one field, by exchange.
type Row struct {
	Field  string
	Counts [fates]int
}

// Total is the number of exchanges behind a row.
func (r Row) Total() int {
	total := 0
	for _, count := range r.Counts {
		total += count
	}
	return total
}

// Table is the passport of one operation, or of all other requests when Operation is empty.
type Table struct {
	Operation mapping.Operation
	Kinds     map[Kind]int
	Rows      []Row
	// Skipped are the exchanges whose answer is not known.
	Skipped []string
}

// Exchanges is the number of exchanges that were replayed.
func (t *Table) Exchanges() int {
	total := 0
	for _, count := range t.Kinds {
		total += count
	}
	return total
}

// Passport sums up what became of every exchange and field: a table for each operation and one for the rest.
func Passport(exchanges []wire.Exchange, results []Result) []Table {
	tables := []Table{}
	for _, operation := range append(mapping.Operations(), "") {
		table := Table{Operation: operation, Kinds: map[Kind]int{}}
		counts := map[string]*[fates]int{}
		for _, result := range results {
			if is := recording.OperationOf(result.Request.Method, result.Request.Path); is == operation {
				table.Kinds[result.Kind()]++
				count(counts, operation, &result)
			}
		}
		for _, field := range append(knownFields(operation), others, request) {
			if counts[field] != nil {
				table.Rows = append(table.Rows, Row{field, *counts[field]})
			}
		}
		for _, exchange := range exchanges {
			if is := recording.OperationOf(exchange.Request.Method, exchange.Request.Path); is == operation && exchange.Response == nil {
				table.Skipped = append(table.Skipped, exchange.Name)
			}
		}
		tables = append(tables, table)
	}
	return tables
}

// count adds one exchange to the rows of its fields. Each field of it has one fate.
func count(counts map[string]*[fates]int, operation mapping.Operation, result *Result) {
	for field, fate := range fatesIn(operation, result) {
		if counts[field] == nil {
			counts[field] = &[fates]int{}
		}
		counts[field][fate]++
	}
}

// fatesIn tells the fate of each field of an exchange.
func fatesIn(operation mapping.Operation, result *Result) map[string]Fate {
	refused := result.Status >= http.StatusBadRequest
	switch {
	case result.Asked == nil && refused:
		return map[string]Fate{blamedField(operation, result): RefusedHere}
	case result.Asked == nil:
		return map[string]Fate{request: Answered}
	}
	fields, reshaped := map[string]Fate{request: Passed}, ""
	if operation != "" {
		fields, reshaped = fatesOf(operation, result)
	}
	if blamed := blamedField(operation, result); refused && blamed != reshaped {
		fields[blamed] = RefusedThere
	}
	return fields
}

// fatesOf compares what the client said with what the tracker was asked. reshaped is the field that the exchange tries out,
// if Portico gave its value another shape: a recorded refusal of it is one of the shape that the client used.
func fatesOf(operation mapping.Operation, result *Result) (fields map[string]Fate, reshaped string) {
	sent, asked := result.Request, result.Asked
	from := sayings(operation, sent.Method, sent.Path, contentType(sent), sent.Body)
	to := sayings(operation, asked.Method, asked.Target, asked.ContentType, asked.Body)
	known := knownFields(operation)
	fields = map[string]Fate{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		fate := fateOf(operation, name, from[name], to)
		if !slices.Contains(known, name) {
			name, fate = others, max(fate, fields[others])
		}
		fields[name] = fate
	}
	for name := range to {
		if _, said := from[name]; !said && slices.Contains(known, name) {
			fields[name] = Defaulted
		}
	}
	blamed := blamedField(operation, result)
	if got, there := to[blamed]; there && from[blamed].shape() != got.shape() {
		reshaped = blamed
	}
	return fields, reshaped
}

func fateOf(operation mapping.Operation, name string, value said, to map[string]said) Fate {
	got, there := to[name]
	switch {
	case there && got == value:
		return Passed
	case there:
		return Translated
	case slices.Contains(pathFields(operation), name):
		return Translated // the selection in the body says it
	default:
		return LeftOut
	}
}

// blamedField is the field that the name of an exchange names, which is the one that it tries out; or else the whole
// request. ft.create.sortkey.0 names one, att.update.comment_object too, and att.update.member.id one that no interface has.
func blamedField(operation mapping.Operation, result *Result) string {
	parts := strings.FieldsFunc(result.Name, func(r rune) bool { return r == '.' || r == '~' })
	parts = parts[min(2, len(parts)):]
	named := func(field string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return part == field || strings.HasPrefix(part, field+"_") })
	}
	sent, known := result.Request, knownFields(operation)
	for _, field := range known {
		if named(field) {
			return field
		}
	}
	path := pathFields(operation)
	if len(path) == 1 && (named("bugs") || named("by") || operation != mapping.OpUpdateFlagTypes && slices.Contains(parts, "id")) {
		return path[0]
	}
	for field := range sayings(operation, sent.Method, sent.Path, contentType(sent), sent.Body) {
		if !slices.Contains(known, field) && named(field) {
			return others
		}
	}
	return request
}

// pathFields are the names of the segments of an operation's path.
func pathFields(operation mapping.Operation) []string {
	return map[mapping.Operation][]string{
		mapping.OpFlagTypes: {"product", "component"}, mapping.OpUpdateFlagTypes: {"id_or_name"},
		mapping.OpBugAttachments: {"bug_id"}, mapping.OpAttachment: {"attachment_id"},
		mapping.OpCreateAttachment: {"bug_id"}, mapping.OpUpdateAttachments: {"attachment_id"},
	}[operation]
}

// knownFields are the fields of interface.md, the path's first, and the query parameters of reads (tracker-behaviour.md section 5).
func knownFields(operation mapping.Operation) []string {
	shared := []string{
		"name", "description", "inclusions", "exclusions", "sortkey", "is_active", "is_requestable", "cc_list",
		"is_specifically_requestable", "is_multiplicable", "grant_group", "request_group",
	}
	filters := []string{"ids", "attachment_ids", "include_fields", "exclude_fields"}
	return append(slices.Clone(pathFields(operation)), map[mapping.Operation][]string{
		mapping.OpCreateFlagType:  slices.Insert(slices.Clone(shared), 2, "target_type"),
		mapping.OpUpdateFlagTypes: append([]string{"ids", "names"}, shared...),
		mapping.OpBugAttachments:  filters, mapping.OpAttachment: filters,
		mapping.OpCreateAttachment: {
			"ids", "data", "file_name", "summary", "content_type", "comment", "is_patch", "is_private", "flags", "obsoletes",
		},
		mapping.OpUpdateAttachments: {
			"ids", "file_name", "summary", "comment", "content_type", "is_patch", "is_private", "is_obsolete", "flags",
		},
	}[operation]...)
}
