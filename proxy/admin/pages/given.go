package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what people send.
const (
	mostForm   = 64 << 10
	mostTable  = 1 << 20
	mostActor  = 100
	mostReason = 1000
)

// judgement is who does something, why, and until when it shall hold.
type judgement struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// Until is a day, a time or a length of time; nothing means without end.
	Until string `json:"until"`

	// Ends is what Until means.
	Ends time.Time `json:"-"`
	// Problems are what is wrong.
	Problems []fieldProblem `json:"-"`
}

// Problem gives what is wrong with a field, for the form.
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

// readJudgement reads a judgement from a form or from JSON. An error is one of the request as a whole.
func readJudgement(w http.ResponseWriter, r *http.Request, now time.Time) (judgement, *fault) {
	var j judgement
	if isJSON(r) {
		if f := readJSON(w, r, mostForm, &j); f != nil {
			return j, f
		}
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := r.ParseForm(); err != nil {
			return j, unreadable("form", err)
		}
		j.Actor, j.Reason, j.Until = r.PostForm.Get("actor"), r.PostForm.Get("reason"), r.PostForm.Get("until")
	}
	j.check(now)
	return j, nil
}

// check trims what was given and notes what is wrong.
func (j *judgement) check(now time.Time) {
	j.Actor = j.text("actor", "Say who you are", j.Actor, mostActor)
	if strings.Contains(j.Actor, "\n") {
		j.wrong("actor", "This holds characters that cannot be shown.")
	}
	j.Reason = j.text("reason", "Say why", j.Reason, mostReason)
	j.Until = strings.TrimSpace(j.Until)
	ends, err := parseUntil(j.Until, now)
	switch {
	case err != nil:
		j.wrong("until", "Give a day such as 2030-12-31, a time such as 2030-12-31T12:00:00Z, or a length of time such as 48h or 30d.")
	case !ends.IsZero() && !ends.After(now):
		j.wrong("until", "This is in the past. Give a later day, or leave it empty.")
	default:
		j.Ends = ends
	}
}

// text checks one text that must be there.
func (j *judgement) text(field, ask, text string, most int) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	strange := func(c rune) bool { return unicode.IsControl(c) && c != '\n' }
	switch {
	case text == "":
		j.wrong(field, ask+": this is kept in the audit trail.")
	case utf8.RuneCountInString(text) > most:
		j.wrong(field, fmt.Sprintf("This is too long: at most %d characters.", most))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, strange):
		j.wrong(field, "This holds characters that cannot be shown.")
	}
	return text
}

var errUntil = errors.New("no day, no time and no length of time")

// parseUntil reads when something ends: a day counts to its end in UTC, a length of time from now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		if _, err := fmt.Sscanf(days+";", "%d;", &n); err == nil && n > 0 && n <= 3650 {
			return now.AddDate(0, 0, n).UTC(), nil
		}
	}
	if length, err := time.ParseDuration(text); err == nil {
		return now.Add(length).UTC(), nil
	}
	return time.Time{}, errUntil
}

func isJSON(r *http.Request) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "application/json"
}

// readJSON reads the one value that a body holds, strictly.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, into any) *fault {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return unreadable("JSON", err)
	}
	if decoder.More() {
		return &fault{Status: http.StatusBadRequest, Error: "Only one JSON value is expected."}
	}
	return nil
}

// unreadable is the answer to a body that is not what it should be.
func unreadable(what string, err error) *fault {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{Status: http.StatusRequestEntityTooLarge, Error: fmt.Sprintf("The request is too large: at most %d bytes.", tooLarge.Limit)}
	}
	return &fault{Status: http.StatusBadRequest, Error: "The " + what + " cannot be read: " + strings.TrimPrefix(err.Error(), "json: ") + "."}
}
