package admin

import (
	_ "embed" // the middle of the page
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// overview is the page at /: the status as tables.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	text, err := s.state(r.Context())
	var state any
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		plain(w, http.StatusInternalServerError, "the status cannot be shown")
		return
	}
	data := overviewData{Ready: s.ready.Load()}
	data.Plain, data.Groups = sortStatus(state)
	Show(w, r, Sheet{Title: "Status", Body: overviewPage, Data: data, Live: true})
}

type overviewData struct {
	Ready  bool
	Plain  []statusEntry
	Groups []statusEntry
}

type statusEntry struct {
	Name  string
	Value any
}

// sortStatus tells what is one line each from what needs a table of its own.
func sortStatus(state any) (lines, groups []statusEntry) {
	object, ok := state.(map[string]any)
	if !ok {
		return []statusEntry{{Name: "status", Value: state}}, nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		entry := statusEntry{Name: inWords(name), Value: object[name]}
		if isObject(entry.Value) || len(columnsOf(entry.Value)) > 0 {
			groups = append(groups, entry)
		} else {
			lines = append(lines, entry)
		}
	}
	return lines, groups
}

// isObject and the others tell the template how a value is to be shown.
func isObject(value any) bool { _, ok := value.(map[string]any); return ok }
func isList(value any) bool   { _, ok := value.([]any); return ok }

// isObjects tells whether a value is an object of objects.
func isObjects(value any) bool {
	object, _ := value.(map[string]any)
	for _, inner := range object {
		if !isObject(inner) {
			return false
		}
	}
	return len(object) > 0
}

// columnsOf gives the members of a list of objects, so that it can be a table; none for anything else.
func columnsOf(value any) []string {
	list, _ := value.([]any)
	columns := map[string]bool{}
	for _, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return nil
		}
		for name := range object {
			columns[name] = true
		}
	}
	return slices.Sorted(maps.Keys(columns))
}

// inWords makes a name of JSON readable.
func inWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

// shown writes a value that is neither object nor list.
func shown(value any) string {
	switch x := value.(type) {
	case nil:
		return "none"
	case bool:
		return map[bool]string{true: "yes", false: "no"}[x]
	case string:
		if at, err := time.Parse(time.RFC3339, x); err == nil {
			return at.UTC().Format("2006-01-02 15:04:05 UTC")
		}
		return x
	default:
		return fmt.Sprint(x)
	}
}

//go:embed look/overview.html
var overviewText string

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"object": isObject, "objects": isObjects, "list": isList, "columns": columnsOf, "words": inWords, "shown": shown,
}).Parse(overviewText))
