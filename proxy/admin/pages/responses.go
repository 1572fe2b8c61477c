package pages

import (
	"embed"
	"errors"
	"net/http"
	"strings"

	"portico/proxy/admin"
	"portico/proxy/admin/pages/transition"
	"portico/proxy/admin/view"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

//go:embed html
var files embed.FS

var templates = view.New(files, functions)

// fault is an error response.
type fault struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	// Problems are those of single fields.
	Problems []fieldProblem `json:"problems,omitempty"`
	// Rules are the problems of a table of rules.
	Rules []switchover.Problem `json:"rules,omitempty"`
	// Plan is what a move lacks.
	Plan *transition.Plan `json:"plan,omitempty"`
	// Present is the state that a change was in conflict with.
	Present any `json:"present,omitempty"`
}

// Error implements error.
func (f *fault) Error() string { return f.Message }

// fieldProblem is a problem of one field of a request.
type fieldProblem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// handler responds with what it writes or, when it has written nothing, with its error.
type handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		refuse(w, r, err)
	}
}

// formPage shows a page with a form, again if the form had problems.
type formPage func(w http.ResponseWriter, r *http.Request, status int, form judgement) error

// first shows the page with a form that nobody has filled in.
func (p formPage) first(w http.ResponseWriter, r *http.Request) error {
	return p(w, r, http.StatusOK, newForm(r))
}

// routes serves handlers by their patterns.
func routes(handlers map[string]handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range handlers {
		mux.Handle(pattern, h)
	}
	return mux
}

// fromBrowser reports whether a request is for a page. All other ones get JSON.
func fromBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasSuffix(r.URL.Path, ".json")
}

// writeJSON is the end of a handler that responds with a value, unless there is an error.
func writeJSON(w http.ResponseWriter, value any, err error) error {
	if err == nil {
		admin.WriteJSON(w, http.StatusOK, value)
	}
	return err
}

// live is a page that offers to load itself again. One with a form that takes time to fill in does not.
const live = true

// show responds with a page.
func show(w http.ResponseWriter, r *http.Request, status int, title, file string, data any, reloads bool) error {
	admin.Show(w, r, admin.Sheet{Status: status, Title: title, Templates: templates, Body: file, Data: data, Live: reloads})
	return nil
}

// refuse responds with an error, as a page or as JSON. An error that is no fault is one of the store.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	f, isFault := errors.AsType[*fault](err)
	switch {
	case isFault:
	case errors.Is(err, state.ErrNotFound):
		f = &fault{Status: http.StatusNotFound, Message: "There is no such finding. A reset may have removed it."}
	default:
		f = &fault{Status: http.StatusServiceUnavailable, Message: "What was found cannot be read or written now: " + err.Error() + "."}
	}
	if !fromBrowser(r) {
		admin.WriteJSON(w, f.Status, f)
		return
	}
	back := "/" + strings.Split(r.URL.Path, "/")[1]
	if back == r.URL.Path {
		back = "/"
	}
	title := http.StatusText(f.Status)
	_ = show(w, r, f.Status, title, "fault.html", struct {
		*fault
		Heading, Back string
	}{f, title, back}, !live)
}

// Absent replaces pages of what this Portico lacks, and says what that is. It is not listed.
func Absent(path, lacks string) admin.Page {
	return admin.Page{Path: path, Handler: handler(func(http.ResponseWriter, *http.Request) error {
		return &fault{Status: http.StatusNotFound, Message: "This Portico has " + lacks + "."}
	})}
}
