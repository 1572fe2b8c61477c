package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Maximum lengths: of bodies in bytes, of texts in characters.
const (
	maxForm   = 64 << 10
	maxTable  = 1 << 20
	maxActor  = 100
	maxReason = 1000
)

// judgement says who makes a change, why, and until when it holds.
type judgement struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// Until is a day, a time or a duration; empty means without end.
	Until string `json:"until"`
	// Signatures are those of the findings that a judgement of several is about.
	Signatures []string `json:"signatures"`
	// Despite names preconditions that need not hold.
	Despite []string `json:"despite"`

	// Ends is the time that Until means.
	Ends time.Time `json:"-"`
	// Problems are those of the fields above.
	Problems []fieldProblem `json:"-"`
}

// newForm returns the judgement that a form begins with: the name is that of the browser's login.
func newForm(r *http.Request) judgement {
	name, _, _ := r.BasicAuth()
	return judgement{Actor: strings.TrimSpace(name)}
}

// Problem returns the problem of a field, for the form.
func (j judgement) Problem(field string) string {
	for _, problem := range j.Problems {
		if problem.Field == field {
			return problem.Message
		}
	}
	return ""
}

func (j *judgement) wrong(field, message string) {
	j.Problems = append(j.Problems, fieldProblem{Field: field, Message: message})
}

// check trims the fields and notes their problems.
func (j *judgement) check() {
	j.Actor = j.text("actor", "Say who you are", j.Actor, maxActor)
	j.Reason = j.text("reason", "Say why", j.Reason, maxReason)
	j.Until = strings.TrimSpace(j.Until)
	now := time.Now()
	ends, understood := parseUntil(j.Until, now)
	switch {
	case !understood:
		j.wrong("until", "Give a day such as 2030-12-31, a time such as 2030-12-31T12:00:00Z, or a length of time such as 48h or 30d.")
	case !ends.IsZero() && !ends.After(now):
		j.wrong("until", "This is in the past. Give a later day, or leave it empty.")
	default:
		j.Ends = ends
	}
}

// text trims and checks one required text.
func (j *judgement) text(field, request, text string, maxLength int) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	switch {
	case text == "":
		j.wrong(field, request+": this is kept in the audit trail.")
	case utf8.RuneCountInString(text) > maxLength:
		j.wrong(field, fmt.Sprintf("This is too long: at most %d characters.", maxLength))
	}
	return text
}

// parseUntil returns when something ends: a day at its end in UTC, a duration counted from now.
func parseUntil(text string, now time.Time) (ends time.Time, understood bool) {
	if text == "" {
		return time.Time{}, true
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), true
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, n).UTC(), err == nil && n > 0 && n <= 3650
	}
	if length, err := time.ParseDuration(text); err == nil {
		return now.Add(length).UTC(), true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err == nil
}

// change is a change that a person makes and signs.
type change struct {
	apply func(context.Context, judgement) error
	form  formPage
	// done is the URL that a browser is redirected to, so that reloading it changes nothing.
	done string
	// result is the response to a script.
	result func(context.Context) (any, error)
}

// serve reads the judgement from a form or from JSON, and applies the change.
func (c change) serve(w http.ResponseWriter, r *http.Request) error {
	var j judgement
	err := readRequest(w, r, &j, func(form url.Values) {
		j = judgement{Actor: form.Get("actor"), Reason: form.Get("reason"), Until: form.Get("until"), Signatures: form["signature"], Despite: form["despite"]}
	})
	if err != nil {
		return err
	}
	if j.check(); len(j.Problems) > 0 {
		return j.refuse(w, r, c.form)
	}
	if err := c.apply(r.Context(), j); err != nil {
		return err
	}
	if fromBrowser(r) {
		http.Redirect(w, r, c.done, http.StatusSeeOther)
		return nil
	}
	value, err := c.result(r.Context())
	return writeJSON(w, value, err)
}

// refuse responds to fields with problems: with the form again, or with JSON.
func (j judgement) refuse(w http.ResponseWriter, r *http.Request, form formPage) error {
	if fromBrowser(r) {
		return form(w, r, http.StatusUnprocessableEntity, j)
	}
	return &fault{Status: http.StatusUnprocessableEntity, Message: "The change was not made.", Problems: j.Problems}
}

// doneMessage confirms a change on the page that the browser is redirected to.
func doneMessage(r *http.Request) string {
	return map[string]string{
		"accept":   "Accepted. It no longer counts against the candidate.",
		"reopen":   "Reopened. The finding counts again.",
		"fixed":    "Marked as fixed. Its operation starts again from zero. A new occurrence reopens it.",
		"reset":    "Reset. Earlier results are discarded.",
		"sampling": "Changed. Active now.",
		"kill":     "The kill switch is on. Everything goes to the old tracker.",
		"advance":  "The rule is one step ahead.",
		"reverse":  "The rule is one step back.",
		"retry":    "The entry is tried again.",
		"skip":     "The entry is left out. Going back is not safe without it.",
		"park":     "The entry is parked, and what follows it in its lane waits.",
		"revive":   "Revived. The rules are active again.",
	}[r.URL.Query().Get("done")]
}

// readRequest reads what JSON or a form says. fromForm takes the fields of a form.
func readRequest(w http.ResponseWriter, r *http.Request, into any, fromForm func(form url.Values)) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		return readJSON(w, r, maxForm, into)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return unreadable("form", err)
	}
	fromForm(r.PostForm)
	return nil
}

// readJSON reads the first value of a body. It rejects unknown members.
func readJSON(w http.ResponseWriter, r *http.Request, maxBytes int64, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return unreadable("JSON", err)
	}
	return nil
}

func unreadable(what string, err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The request is too large: at most %d bytes.", tooLarge.Limit)}
	}
	return &fault{Status: http.StatusBadRequest, Message: "The " + what + " cannot be read: " + strings.TrimPrefix(err.Error(), "json: ") + "."}
}
