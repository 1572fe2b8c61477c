package proxy

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"portico/mapping"
	"portico/upstream/bugzilla"
)

// route decides what becomes of a request, and returns the error of one that gets none of it. A trailing slash and every method that a resource does not have are as good as another
// path (tracker-behaviour.md section 1, Paths and methods).
func (rc *requestContext) route() error {
	if len(rc.r.RequestURI) > maxTarget {
		return mapping.NewError(mapping.CodeURILong, mapping.ReasonTooLarge, "The address is longer than %d bytes.", maxTarget)
	}
	if rc.r.RequestURI == "*" && rc.r.Method == http.MethodOptions { // about the server, as load balancers ask
		rc.record.Operation = OpOptions
		rc.WriteHeader(http.StatusOK)
		return nil
	}
	path, err := normalPath(rc.r.URL.EscapedPath())
	if err != nil {
		return err
	}
	rc.setPath(path)
	of := rc.match()
	op, known := of[rc.r.Method]
	switch {
	case of == nil:
		return rc.pass()
	case withoutCredential(rc.path) != rc.path:
		return mapping.Refuse(mapping.CodeJSON, "The path holds a credential. Credentials belong in a header, the body or the query.")
	case strings.HasSuffix(rc.path, "/"):
	case known:
		rc.record.Operation = op
		defer rc.close()
		rc.reply(rc.carryOut(op))
		return nil
	case rc.r.Method == http.MethodOptions:
		return rc.listMethods(of)
	}
	return rc.noResource()
}

// listMethods lists the methods of a resource to every caller (tracker-behaviour.md section 1), without those for which no tracker
// has a form.
func (rc *requestContext) listMethods(of resource) error {
	methods := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(method string) bool { return rc.server.lacks(rc.r.Context(), of[method]) })
	if len(methods) == 0 {
		return rc.noResource()
	}
	rc.record.Operation = OpOptions
	header := rc.Header()
	setCommonHeaders(header)
	header.Set("Allow", strings.Join(methods, ", "))
	header.Set("Access-Control-Allow-Methods", header.Get("Allow"))
	if isPreflight(rc.r) {
		header.Set("Access-Control-Allow-Headers", preflightHeaders)
	}
	_ = rc.write(http.StatusOK, mapping.NewDocument([]byte("{}"))) // a client that is gone needs no error
	return nil
}

// lacks reports whether no tracker has a form for an operation.
func (s *Server) lacks(ctx context.Context, op mapping.Operation) bool {
	has := s.options.FlagTypeWrites
	return has != nil && (op == mapping.OpCreateFlagType || op == mapping.OpUpdateFlagTypes) && !has(ctx)
}

// noResource is the error for a path or method that Portico does not serve.
func (rc *requestContext) noResource() *mapping.Error {
	path := strings.TrimPrefix(strings.TrimPrefix(unescapeAll(rc.path), "/rest.cgi"), "/rest")
	return mapping.NoResource(cut(rc.r.Method, 64), cut(path, 1024))
}

// isREST reports whether a path belongs to the REST interface.
func isREST(path string) bool {
	return strings.HasPrefix(path, "/rest/") || strings.HasPrefix(path, "/rest.cgi/")
}

// isReading reports whether requests with a method change nothing, but for the links of the administrators' page of flag types.
func isReading(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// isPreflight reports whether a browser asks what it may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// misread reports whether a server could read a normal path that no route matched as something that must not pass: a path that
// climbs out of where it begins, an operation of the interface or a script that changes flag types under an odd spelling, or, for
// writes, the collection of attachments. A stock tracker takes that for the bug named "attachment", so that a write there would edit
// bugs (tracker-behaviour.md section 1, Paths).
func misread(path string, write bool) bool {
	return anyReading(path, func(reading string) bool {
		if bugzilla.MayReadAs(reading, path, write) {
			return true
		}
		end := strings.IndexAny(reading, "?#\x00") // of the path, to a server that finds a query there
		return end >= 0 && bugzilla.MayReadAs(reading[:end], path, write)
	})
}

// anyReading reports whether a path satisfies a condition as it is, or after one of several decodings, because a server may decode
// more than once. A path that does not settle may mean anything, so the condition counts as satisfied.
func anyReading(path string, is func(reading string) bool) bool {
	const rounds = 6
	for range rounds {
		if is(path) {
			return true
		}
		decoded := unescapeAll(path)
		if decoded == path {
			return false
		}
		path = decoded
	}
	return true
}
