package recording

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"portico/mapping"
)

// subject is what the answers to the seven operations tell of, as bits.
type subject uint8

const (
	ofFlagTypes subject = 1 << iota
	ofAttachments

	ofNothing    subject = 0
	ofEverything         = ofFlagTypes | ofAttachments
)

// lack is what is not there because requests were not made.
type lack struct {
	// changed is what they would have changed, and failed the same without those that --only leaves out.
	changed, failed subject
	// tokens are those that logins gave when they were recorded.
	tokens []string
}

// leave keeps in mind what a request would have done that is not made.
func (l *lack) leave(e Exchange, reason string) {
	changed := changedBy(e)
	l.changed |= changed
	if reason != skipNotOnly {
		l.failed |= changed
	}
	if segments := segmentsOf(e.Request.Path); e.Response != nil && len(segments) == 2 && segments[1] == "login" {
		l.token(e.Response.Body)
	}
}

// token keeps the token of an answer in mind. In place of one that was taken out a caller may have another.
func (l *lack) token(answer []byte) {
	var given struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(answer, &given) == nil && given.Token != "" && !placeholder.MatchString(given.Token) {
		l.tokens = append(l.tokens, given.Token)
	}
}

// touches tells whether the recorded answer to a request may tell of what is lacking. What --only leaves out on purpose holds
// no write back.
func (l *lack) touches(r Request, operation mapping.Operation) bool {
	changed := l.changed
	if !isRead(r.Method) {
		changed = l.failed
	}
	return changed&subjectOf(operation) != 0 || slices.ContainsFunc(l.tokens, func(token string) bool {
		return strings.Contains(r.Path, token) || bytes.Contains(r.Body, []byte(token))
	})
}

func subjectOf(operation mapping.Operation) subject {
	switch operation {
	case mapping.OpFlagTypes, mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes:
		return ofFlagTypes
	case mapping.OpBugAttachments, mapping.OpAttachment, mapping.OpCreateAttachment, mapping.OpUpdateAttachments:
		return ofAttachments
	}
	return ofNothing
}

// changedBy tells what a request may have changed when it was recorded; whatever is not known may have changed everything.
// What was refused has changed nothing.
func changedBy(e Exchange) subject {
	segments := segmentsOf(e.Request.Path)
	script := strings.Join(segments[:min(len(segments), 1)], "")
	switch {
	case e.Response != nil && e.Response.Status >= http.StatusBadRequest && e.Response.Status < http.StatusInternalServerError:
		return ofNothing
	case script == "editflagtypes.cgi" && strings.Contains(e.Request.Path, "?"): // its links change things too
		return ofEverything
	case isRead(e.Request.Method):
		return ofNothing
	case script == "rest" || script == "rest.cgi":
		return changedByREST(OperationOf(e.Request.Method, e.Request.Path), segments[1:])
	case script == "jsonrpc.cgi" || script == "xmlrpc.cgi":
		return changedByCall(calledMethod(e.Request.Body))
	}
	return changedByPage(script)
}

// segmentsOf gives the segments of a path as trackers see them.
func segmentsOf(target string) []string {
	path, _, _ := strings.Cut(withoutHost(target), "?")
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func changedByREST(operation mapping.Operation, segments []string) subject {
	switch {
	case operation == mapping.OpUpdateFlagTypes: // attachments show the names of theirs
		return ofEverything
	case operation != "":
		return subjectOf(operation)
	case len(segments) > 0 && segments[0] == "bug":
		return ofAttachments
	case len(segments) > 0 && segments[0] == "bug_user_last_visit":
		return ofNothing
	}
	return ofEverything
}

// inertPages change nothing but what belongs to the one who uses them.
var inertPages = []string{"index.cgi", "buglist.cgi", "query.cgi", "show_bug.cgi", "userprefs.cgi", "token.cgi", "report.cgi", "colchange.cgi", "request.cgi"}

func changedByPage(script string) subject {
	switch {
	case slices.Contains(inertPages, script):
		return ofNothing
	case slices.Contains([]string{"post_bug.cgi", "process_bug.cgi", "attachment.cgi"}, script):
		return ofAttachments
	}
	return ofEverything
}

// readingCall matches methods of the older interfaces that only read, or only concern the caller's own session.
var readingCall = regexp.MustCompile(`^[A-Za-z]+\.(?:get[a-z_]*|search|attachments|comments|history|fields|legal_values|possible_duplicates|version|time|extensions|parameters|login|logout|valid_login)$`)

func changedByCall(method string) subject {
	switch {
	case readingCall.MatchString(method):
		return ofNothing
	case method == "FlagType.create":
		return ofFlagTypes
	case strings.HasPrefix(method, "Bug."):
		return ofAttachments
	}
	return ofEverything
}

var methodElement = regexp.MustCompile(`<methodName>\s*([A-Za-z_.]+)\s*</methodName>`)

// calledMethod gives the method of one call, empty when it is not known.
func calledMethod(body []byte) string {
	if found := methodElement.FindAllSubmatch(body, 2); len(found) == 1 {
		return string(found[0][1])
	}
	var call struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(body, &call) != nil {
		return ""
	}
	return call.Method
}
