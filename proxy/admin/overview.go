package admin

import (
	_ "embed" // the page's content
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
	var state any
	text, err := json.Marshal(s.options.Status(r.Context()))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		plain(w, http.StatusInternalServerError, "the status cannot be shown")
		return
	}
	data := overviewData{Ready: s.ready.Load()}
	members, isObject := state.(map[string]any)
	if !isObject {
		members = map[string]any{"status": state}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		entry := statusEntry{Name: inWords(name), Value: members[name]}
		if _, isObject := entry.Value.(map[string]any); isObject || len(columnsOf(entry.Value)) > 0 {
			data.Groups = append(data.Groups, entry)
		} else {
			data.Plain = append(data.Plain, entry)
		}
	}
	Show(w, r, Sheet{Title: "Status", Body: overviewPage, Data: data, Live: true})
}

// overviewData has the entries of one line, and the groups that need a table of their own.
type overviewData struct {
	Ready         bool
	Plain, Groups []statusEntry
}

type statusEntry struct {
	Name  string
	Value any
}

// isObjects reports whether a value is an object of objects.
func isObjects(value any) bool {
	object, _ := value.(map[string]any)
	for _, inner := range object {
		if _, isObject := inner.(map[string]any); !isObject {
			return false
		}
	}
	return len(object) > 0
}

// columnsOf returns the members of a list of objects, so that it can be a table; none for anything else.
func columnsOf(value any) []string {
	list, _ := value.([]any)
	columns := map[string]bool{}
	for _, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject {
			return nil
		}
		for name := range object {
			columns[name] = true
		}
	}
	return slices.Sorted(maps.Keys(columns))
}

// inWords makes a JSON name readable.
func inWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

// shown writes a scalar.
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
	}
	return fmt.Sprint(value)
}

//go:embed assets/overview.html
var overviewText string

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"objects": isObjects, "columns": columnsOf, "words": inWords, "shown": shown,
}).Parse(overviewText))
