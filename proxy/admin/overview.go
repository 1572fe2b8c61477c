package admin

import (
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
)

// overview is the page at /: the status as tables, and where to look further.
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
	listed := slices.DeleteFunc(slices.Clone(s.options.Pages), func(p Page) bool { return p.Title == "" })
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A browser that went away needs no error.
	_ = overviewPage.Execute(w, overviewData{Ready: s.ready.Load(), State: state, Pages: listed, Metrics: s.options.Metrics != nil})
}

type overviewData struct {
	Ready   bool
	Metrics bool
	State   any
	Pages   []Page
}

// isObject and isList tell the template how a value is to be shown.
func isObject(value any) bool { _, ok := value.(map[string]any); return ok }
func isList(value any) bool   { _, ok := value.([]any); return ok }

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{"object": isObject, "list": isList}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<title>Portico</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-top: 1px solid #8884; overflow-wrap: anywhere; }
th { font-weight: 600; width: 12rem; }
.state { padding: .1rem .6rem; border-radius: 1rem; border: 1px solid; }
nav a { margin-right: 1rem; }
</style>
</head>
<body>
<h1>Portico <span class="state">{{if .Ready}}ready{{else}}starting or draining{{end}}</span></h1>
<nav aria-label="Pages">
{{range .Pages}}<a href="{{.Path}}">{{.Title}}</a>
{{end}}<a href="/status">Status as JSON</a>
{{if .Metrics}}<a href="/metrics">Metrics</a>
{{end}}</nav>
<main>
{{template "value" .State}}
</main>
</body>
</html>
{{define "value"}}{{if object .}}<table>{{range $name, $value := .}}<tr><th scope="row">{{$name}}</th><td>{{template "value" $value}}</td></tr>
{{end}}</table>{{else if list .}}{{range .}}<div>{{template "value" .}}</div>{{else}}none{{end}}{{else if eq . nil}}none{{else}}{{.}}{{end}}{{end}}`))
