package facade

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"portico/mapping"
	"portico/test/wire"
)

// intro is what the page says before its figures.
const intro = `# Compatibility passport

The results of %d recorded requests to a real tracker (Bugzilla 5.2), sent through Portico to a tracker that gives the recorded responses.
The responses to %d of them are known and were compared: status, JSON, and the headers that a client can depend on. The others are listed at
the end. ` + "`go run ./test/wire/passport`" + ` writes this page, and a test compares it with the recordings.

## Responses

- **same**: no client can tell Portico's response from the recorded one.
- **better by design**: it differs for a reason that is given below and in [divergences.md](../divergences.md).
- **not replayable**: the recorded response cannot be given again.
- **different**: the difference is not explained.

`

// WritePassport writes docs/evidence/COMPATIBILITY.md, Bugzilla 5.2 first.
func WritePassport(out io.Writer, all []Replayed) error {
	var page strings.Builder
	for i, one := range all {
		tables := Passport(one.Exchanges, one.Results)
		if i == 0 {
			writeMain(&page, tables, one.Exchanges, one.Results)
			continue
		}
		fmt.Fprintf(&page, section, one.Title, len(one.Exchanges), len(one.Results))
		writeTotals(&page, tables)
		fmt.Fprintf(&page, "\n### Reasons for differences of %s\n", one.Title)
		writeAccounts(&page, one.Accounts, one.Results)
	}
	_, err := io.WriteString(out, page.String())
	return err
}

// writeMain writes the part of the first tracker, with what was skipped.
func writeMain(page *strings.Builder, tables []Table, exchanges []wire.Exchange, results []Result) {
	fmt.Fprintf(page, intro, len(exchanges), len(results))
	writeTotals(page, tables)
	page.WriteString("\n## Reasons for differences\n")
	writeAccounts(page, accountsOf52(), results)
	page.WriteString(`
These are not counted: the tracker's unquoted ETag and its cookie for anonymous callers, which Portico passes on with successes other
than reads of flag types, and not with errors; the length, which Portico tells; and ` + "`flag_id`" + `, the second name of a new flag type's id.
`)
	writeSkipped(page, tables)
}

// section begins the part of a further tracker.
const section = `
## %s

%d of the requests were sent to this tracker too, those for flag types under ` + "`/rest/flag_types`" + `; most flag type writes are left out, since
the tracker has none. The responses to %d are known. Each was replayed through Portico with the dialect ` + "`bmo`" + `, as above.
Not counted, besides what is named above: the request headers that scripts of other sites may send, Harmony's Cache-Control, and the new
attachments in the responses to creates, which Portico names in ` + "`ids`" + `.

`

func writeTotals(page *strings.Builder, tables []Table) {
	kinds := []Kind{Same, Better, Unplayable, Different}
	page.WriteString("| operation | exchanges |")
	for _, kind := range kinds {
		fmt.Fprintf(page, " %s |", kind)
	}
	page.WriteString(" skipped |\n|---|--:|--:|--:|--:|--:|--:|\n")
	all := Table{Kinds: map[Kind]int{}}
	line := func(name string, table *Table) {
		fmt.Fprintf(page, "| %s | %d |", name, table.Exchanges())
		for _, kind := range kinds {
			fmt.Fprintf(page, " %d |", table.Kinds[kind])
		}
		fmt.Fprintf(page, " %d |\n", len(table.Skipped))
	}
	for i := range tables {
		line(title(tables[i].Operation), &tables[i])
		for kind, count := range tables[i].Kinds {
			all.Kinds[kind] += count
		}
		all.Skipped = append(all.Skipped, tables[i].Skipped...)
	}
	line("**all**", &all)
}

// title names an operation as the interface does.
func title(operation mapping.Operation) string {
	if operation == "" {
		return "other requests"
	}
	return string(operation)
}

func writeAccounts(page *strings.Builder, accounts []Account, results []Result) {
	page.WriteString("\n| reason | kind | exchanges |\n|---|---|--:|\n")
	for _, account := range accounts {
		count := 0
		for _, result := range results {
			if slices.Contains(account.Names, result.Name) && result.Kind() == account.Kind {
				count++
			}
		}
		fmt.Fprintf(page, "| %s | %s | %d |\n", account.Reason, account.Kind, count)
	}
}

// writeSkipped lists names, those that differ after the last dot only together.
func writeSkipped(page *strings.Builder, tables []Table) {
	page.WriteString("\n## Skipped exchanges\n\nThe responses to these are not part of the recordings.\n")
	for i := range tables {
		if len(tables[i].Skipped) == 0 {
			continue
		}
		fmt.Fprintf(page, "\n**%s** (%d): ", title(tables[i].Operation), len(tables[i].Skipped))
		page.WriteString(strings.Join(folded(tables[i].Skipped), " · ") + "\n")
	}
}

// folded joins neighbours that share all but the last part of their names.
func folded(names []string) []string {
	var groups, ends []string
	last := ""
	flush := func() {
		if len(ends) == 1 {
			groups = append(groups, "`"+last+ends[0]+"`")
		} else if len(ends) > 1 {
			groups = append(groups, "`"+last+"{"+strings.Join(ends, ",")+"}`")
		}
		ends = nil
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		dot := strings.LastIndexByte(name, '.') + 1
		if name[:dot] != last {
			flush()
			last = name[:dot]
		}
		ends = append(ends, name[dot:])
	}
	flush()
	return groups
}
