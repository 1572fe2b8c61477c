package tracker

import (
	"errors"
	"net/http"
	"strings"
)

// plan is a request whose operation is known and whose answer is not made yet.
type plan struct {
	// op names the operation for counts and faults; what the web server answers itself is "page".
	op  string
	run func() *reply
}

// plan finds out what a request asks for.
func (s *Server) plan(r *http.Request) plan {
	program, path, page := s.locate(r)
	if page != nil {
		return plan{op: "page", run: func() *reply { return page }}
	}
	if r.Method == http.MethodTrace {
		return plan{op: "trace", run: func() *reply { return traceReply(r) }}
	}
	switch program {
	case scriptREST:
		return s.planREST(r, path)
	case scriptJSONRPC:
		return s.planJSONRPC(r)
	case scriptXMLRPC:
		return s.planXMLRPC(r)
	}
	return s.planPage(r, program)
}

// traceReply echoes the request, as the web server does for TRACE.
func traceReply(r *http.Request) *reply {
	a := newReply(http.StatusOK)
	a.header.Set("Content-Type", "message/http")
	var b strings.Builder
	b.WriteString(r.Method + " " + r.RequestURI + " " + r.Proto + "\r\nHost: " + r.Host + "\r\n")
	_ = r.Header.Write(&b)
	b.WriteString("\r\n")
	a.body = []byte(b.String())
	return a
}

// planREST matches the path with the resources, which comes before everything else (tracker-behaviour.md section 1, Order of checks).
func (s *Server) planREST(r *http.Request, path string) plan {
	f := form{contentType: s.negotiate(r.Header.Get("Accept"))}
	match, options := s.find(r.Method, path)
	switch {
	case match == nil && r.Method == http.MethodOptions && options != nil:
		return plan{op: "options", run: func() *reply {
			return s.restReply(r, f, outcome{result: object{}, anonymous: true, allow: options})
		}}
	case match == nil && r.Method == http.MethodOptions && s.mojolicious():
		return plan{op: "unknown", run: s.nothingReply}
	case match == nil:
		return plan{op: "unknown", run: func() *reply {
			err := fail(codeNoResource, "there is no REST resource for '%s %s'", r.Method, path)
			return s.restReply(r, f, outcome{err: err, anonymous: true})
		}}
	}
	return plan{op: match.operation.name, run: func() *reply { return s.runREST(r, f, match) }}
}

// runREST reads the parameters, makes the call and writes the answer.
func (s *Server) runREST(r *http.Request, f form, m *match) *reply {
	success := m.operation.success
	params, err := parameters(r, m.params)
	if errors.Is(err, errNotObject) {
		return s.restReply(r, f, outcome{nothing: true})
	}
	if err != nil {
		return s.restReply(r, f, outcome{err: err, success: success, anonymous: true})
	}
	splitFieldLists(params)
	fixCredentials(params)
	if s.mojolicious() {
		s.headerCredentials(r.Header, params)
	}
	if f.contentType != typeJSON && s.mojolicious() {
		f.callback, f.contentType = "callback", "text/javascript"
	}
	if v := params["callback"]; truth(v) {
		name := trim(text(v))
		if !callbackName(name) {
			err := fail(codeBadCallback, "'%s' is no name for a callback", name)
			return s.restReply(r, f, outcome{err: err, success: success, anonymous: true})
		}
		f.callback, f.contentType = name, "text/javascript"
	}
	return s.restReply(r, f, s.perform(r, m.operation, params))
}

func callbackName(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.[]") == ""
}

// splitFieldLists splits include_fields and exclude_fields when they are given once, at commas, blanks and plus signs.
func splitFieldLists(params object) {
	for _, name := range []string{"include_fields", "exclude_fields"} {
		s, ok := params[name].(string)
		if !ok {
			continue
		}
		list := []any{}
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\f+,", r) }) {
			list = append(list, f)
		}
		params[name] = list
	}
}
