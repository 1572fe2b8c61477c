package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/upstream/bugzilla"
)

// anyMethod is the one method that routes are registered under. A path is looked up first and the method afterwards,
// because a real tracker never responds with 405 and has responses of its own for HEAD and OPTIONS.
const anyMethod = "ANY"

// resource is what a path stands for: an operation for each method that it has.
type resource map[string]mapping.Operation

func resourceOf(operations ...mapping.Operation) resource {
	of := resource{}
	for _, op := range operations {
		of[op.Method()] = op
	}
	return of
}

// routes registers the resources of interface.md. Their handles only note in the request context what they found.
func routes() *httprouter.Router {
	router := httprouter.New()
	route := func(path string, operations ...mapping.Operation) {
		of := resourceOf(operations...)
		router.Handle(anyMethod, path, func(w http.ResponseWriter, _ *http.Request, segments httprouter.Params) {
			rc := w.(*requestContext)
			rc.resource, rc.segments = of, segments
		})
	}
	ofBug := resourceOf(mapping.OpBugAttachments, mapping.OpCreateAttachment)
	byID := resourceOf(mapping.OpAttachment, mapping.OpUpdateAttachments)
	for _, root := range []string{"/rest", "/rest.cgi"} {
		// BMO and Harmony have flag types under the plural name, which is an alias here, whatever the tracker
		// (tracker-behaviour.md section 14).
		for _, name := range []string{"/flag_type", "/flag_types"} {
			route(root+name, mapping.OpCreateFlagType)
			route(root+name+"/:a", mapping.OpFlagTypes, mapping.OpUpdateFlagTypes)
			route(root+name+"/:a/:b", mapping.OpFlagTypes)
		}
		// One router cannot tell the two resources below /bug apart. Attachments of a bug come first, so /bug/attachment/attachment
		// is those of the bug whose alias is "attachment", as for a real tracker.
		router.Handle(anyMethod, root+"/bug/:a/:b", func(w http.ResponseWriter, _ *http.Request, segments httprouter.Params) {
			rc := w.(*requestContext)
			switch "attachment" {
			case segments[1].Value:
				rc.resource, rc.segments = ofBug, segments[:1]
			case segments[0].Value:
				rc.resource, rc.segments = byID, segments[1:]
			}
		})
	}
	return router
}

// match returns the resource of the path, nil for a path that interface.md does not have.
func (rc *requestContext) match() resource {
	if handle, segments, _ := rc.server.router.Lookup(anyMethod, strings.TrimSuffix(rc.path, "/")); handle != nil {
		handle(rc, rc.r, segments)
	}
	return rc.resource
}

// route decides what becomes of a request. A trailing slash and every method that a resource does not have are as good as another
// path (tracker-behaviour.md section 1, Paths and methods).
func (rc *requestContext) route() {
	if limit := rc.server.options.Limits.URI; len(rc.r.RequestURI) > limit {
		rc.fail(failure(mapping.CodeURILong, mapping.ReasonTooLarge, fmt.Sprintf("The address is longer than %d bytes.", limit), nil))
		return
	}
	path, err := normalPath(rc.r.URL.EscapedPath())
	if err != nil {
		rc.fail(err)
		return
	}
	rc.setPath(path)
	of := rc.match()
	op, known := of[rc.r.Method]
	switch {
	case of == nil:
		rc.pass()
	case withoutCredential(rc.path) != rc.path:
		rc.fail(mapping.Refuse(mapping.CodeJSON, "The path holds a credential. Credentials belong in a header, the body or the query."))
	case strings.HasSuffix(rc.path, "/"):
		rc.fail(rc.noResource())
	case known:
		rc.perform(op)
	case rc.r.Method == http.MethodOptions:
		rc.listMethods(of)
	default:
		rc.fail(rc.noResource())
	}
}

// listMethods lists the methods of a resource to every caller (tracker-behaviour.md section 1), without those for which no tracker
// has a form.
func (rc *requestContext) listMethods(of resource) {
	methods := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(method string) bool { return rc.server.lacks(rc.r.Context(), of[method]) })
	if len(methods) == 0 {
		rc.fail(rc.noResource())
		return
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

const alphanumerics = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// badPath is the error for a path that cannot be understood.
func badPath() *mapping.Error { return mapping.Refuse(mapping.CodeJSON, "The path is malformed.") }

// normalPath rewrites an escaped path as the web server of a real tracker does before it looks for a resource
// (tracker-behaviour.md section 1, Paths): unreserved characters lose their escapes, double slashes become one, and dot
// segments are resolved, encoded ones too. All other escapes stay, so a slash in a name stays apart from one between names.
// What does not begin with a slash, such as the * of OPTIONS, is no path.
func normalPath(escaped string) (string, error) {
	switch {
	case escaped != "" && escaped[0] != '/':
		return "", badPath()
	case escaped != "" && !strings.Contains(escaped, "%") && !strings.Contains(escaped, "//") && !strings.Contains(escaped, "/."):
		return escaped, nil
	}
	plain, ok := unescape(escaped, func(c byte) bool { return strings.IndexByte(alphanumerics+"-._~", c) >= 0 })
	if !ok {
		return "", badPath()
	}
	return resolveDots(plain)
}

// resolveDots collapses slashes and resolves . and .. segments. A path that climbs above the root is malformed.
func resolveDots(slashed string) (string, error) {
	clean := path.Clean(strings.TrimLeft(slashed, "/"))
	switch {
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", badPath()
	case clean == ".":
		return "/", nil
	}
	switch slashed[strings.LastIndexByte(slashed, '/')+1:] {
	case "", ".", "..":
		clean += "/"
	}
	return "/" + clean, nil
}

// unescape decodes those escapes that stand for certain characters, and writes the others in capitals. ok is false where a percent
// sign begins no escape; it stays as it is.
func unescape(text string, decoded func(byte) bool) (plain string, ok bool) {
	if !strings.Contains(text, "%") {
		return text, true
	}
	var out strings.Builder
	out.Grow(len(text))
	ok = true
	for i := 0; i < len(text); i++ {
		value, escaped := escapedByte(text[i:])
		switch {
		case !escaped:
			ok = ok && text[i] != '%'
			out.WriteByte(text[i])
			continue
		case decoded(value):
			out.WriteByte(value)
		default:
			out.WriteString(strings.ToUpper(text[i : i+3]))
		}
		i += 2
	}
	return out.String(), ok
}

// unescapeAll decodes every well-formed escape, slashes included.
func unescapeAll(text string) string {
	plain, _ := unescape(text, func(byte) bool { return true })
	return plain
}

// escapedByte reads the escape %XY at the start of text.
func escapedByte(text string) (value byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	parsed, err := strconv.ParseUint(text[1:3], 16, 8)
	return byte(parsed), err == nil
}

// misread reports whether a server could read a normal path that no route matched as something that must not pass: a path that
// climbs out of where it begins, an operation of the interface or a script that changes flag types under an odd spelling, or, for
// writes, the collection of attachments. A stock tracker takes that for the bug named "attachment", so that a write there would edit
// bugs (tracker-behaviour.md section 1, Paths).
func misread(path string, write bool) bool {
	return anyReading(path, func(reading string) bool {
		beforeQuery := reading
		if end := strings.IndexAny(reading, "?#\x00"); end >= 0 {
			beforeQuery = reading[:end]
		}
		return bugzilla.MayReadAs(reading, path, write) || bugzilla.MayReadAs(beforeQuery, path, write)
	})
}

// anyReading reports whether a path satisfies a condition as it is, or after one of several decodings, because a server may decode
// more than once. A path that does not settle, or has overlong UTF-8, may mean anything, so the condition counts as satisfied.
func anyReading(path string, is func(reading string) bool) bool {
	const rounds = 12
	for range rounds {
		if is(path) || isOverlong(path) {
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

// isOverlong reports whether a text holds an overlong UTF-8 form of an ASCII character, such as C0 AF for a slash.
func isOverlong(text string) bool {
	for i := range len(text) - 1 {
		next := text[i+1]
		switch c := text[i]; {
		case c&0xfe == 0xc0 && next&0xc0 == 0x80, c == 0xe0 && next&0xe0 == 0x80, c == 0xf0 && next&0xf0 == 0x80:
			return true
		}
	}
	return false
}

// parameter is one name and value of a query or of a form body.
type parameter struct{ name, value string }

// parameters are those of one request in their order.
type parameters []parameter

// parseQuery reads a query as a tracker does: & and ; separate, a plus is a blank, and an invalid escape stays as it
// is written. Text that is not UTF-8 is taken as Latin-1, and ok is false (recorded as proto.semicolon,
// proto.bad_percent_query, proto.latin1_query).
func parseQuery(query string) (list parameters, ok bool) {
	ok = true
	for piece := range strings.FieldsFuncSeq(query, isSeparator) {
		name, value, _ := strings.Cut(piece, "=")
		name, nameOK := queryText(name, false)
		value, valueOK := queryText(value, name == "data")
		list = append(list, parameter{name, value})
		ok = ok && nameOK && valueOK
	}
	return list, ok
}

func isSeparator(r rune) bool { return r == '&' || r == ';' }

// queryText decodes a name or value. In base64 a plus means itself, whatever the rules of forms say: otherwise a payload would
// be damaged silently.
func queryText(text string, base64 bool) (plain string, ok bool) {
	if !base64 {
		text = strings.ReplaceAll(text, "+", " ")
	}
	if plain = unescapeAll(text); utf8.ValidString(plain) {
		return plain, true
	}
	return latin1(plain), false
}

func latin1(text string) string {
	var decoded strings.Builder
	for i := range len(text) {
		decoded.WriteRune(rune(text[i]))
	}
	return decoded.String()
}

// all returns every value of a name.
func (p parameters) all(name string) []string {
	var values []string
	for _, each := range p {
		if each.name == name {
			values = append(values, each.value)
		}
	}
	return values
}

// fieldNames reads include_fields or exclude_fields: repeated, or joined by comma, blank or plus (tracker-behaviour.md section 5).
func (p parameters) fieldNames(name string) []string {
	return strings.FieldsFunc(strings.Join(p.all(name), ","), func(r rune) bool { return strings.ContainsRune(", +\t\r\n", r) })
}

// members gives the parameters as members of a JSON object, in the order of their first values. Lists keep all values; of other
// names the first value counts, unless repeated is set.
func (p parameters) members(repeated bool) mapping.Members {
	var members mapping.Members
	for _, each := range p {
		if members.Get(each.name) != nil {
			continue
		}
		values := p.all(each.name)
		always := each.name == "inclusions" || each.name == "exclusions"
		list := always || slices.Contains([]string{"ids", "names", "cc_list"}, each.name)
		if always || len(values) > 1 && (list || repeated) {
			array, _ := json.Marshal(values) // fails on what is not UTF-8 only, which the readers refuse
			members.Set(each.name, array)
		} else {
			members.SetText(each.name, values[0])
		}
	}
	return members
}
