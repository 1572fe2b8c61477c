package pages

import (
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"portico/proxy/admin"
	"portico/upstream/switchover"
)

//go:embed html
var files embed.FS

// page reads the template of one page, with the pieces that all share.
func page(name string) (*template.Template, error) {
	return template.New(name).Funcs(words).ParseFS(files, "html/"+name, "html/pieces.html")
}

// fault is an error with what the one who asked is told.
type fault struct {
	Status int    `json:"-"`
	Error  string `json:"error"`
	// Problems are those of single fields.
	Problems []fieldProblem `json:"problems,omitempty"`
	// Rules are the problems of a table of rules.
	Rules []switchover.Problem `json:"rules,omitempty"`
	// Present is the state that a change was in conflict with.
	Present any `json:"present,omitempty"`
}

// fieldProblem says what is wrong with one field of a request.
type fieldProblem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// fromBrowser tells whether somebody waits for a page. Everybody else is answered in JSON.
func fromBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasSuffix(r.URL.Path, ".json")
}

// tell answers in JSON.
func tell(w http.ResponseWriter, status int, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be shown"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who went away needs no error
}

// refuse says what went wrong, in the form that was asked for.
func refuse(w http.ResponseWriter, r *http.Request, f fault) {
	if !fromBrowser(r) {
		tell(w, f.Status, f)
		return
	}
	back := "/" + strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")[0]
	if back == r.URL.Path {
		back = "/"
	}
	admin.Show(w, r, admin.Sheet{Status: f.Status, Title: http.StatusText(f.Status), Body: faultPage, Data: struct {
		fault
		Heading, Back string
	}{f, http.StatusText(f.Status), back}})
}

// nothingHere answers what is for no page, or for one that takes other methods.
func nothingHere(w http.ResponseWriter, r *http.Request, status int) {
	refuse(w, r, fault{Status: status, Error: "There is no page " + r.Method + " " + r.URL.Path + "."})
}

// Absent stands where the pages of two trackers would be and says that there is one only. It is not listed.
func Absent(path string) admin.Page {
	return admin.Page{Path: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, fault{Status: http.StatusNotFound, Error: "There is nothing to see or to change here: this Portico has no second tracker, which the configuration names as the candidate."})
	})}
}

// see sends a browser to a page after a change, so that loading it again changes nothing.
func see(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// The pages, read once: a template that cannot be read is a mistake of the build.
var (
	faultPage          = template.Must(page("fault.html"))
	canaryOverviewPage = template.Must(page("overview.html"))
	findingsPage       = template.Must(page("findings.html"))
	findingPage        = template.Must(page("finding.html"))
	rulesPage          = template.Must(page("rules.html"))
	switchoverPage     = template.Must(page("switchover.html"))
)
