package admin

import (
	_ "embed" // the middle of the page
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
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
		list, isList := entry.Value.([]any)
		if isObject(entry.Value) || isList && len(list) > 0 && isObject(list[0]) {
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
func isYes(value any) bool    { return value == true }
func isNo(value any) bool     { return value == false }

// inWords makes a name of JSON readable.
func inWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

//go:embed look/overview.html
var overviewText string

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"object": isObject, "list": isList, "yes": isYes, "no": isNo, "words": inWords,
}).Parse(overviewText))
