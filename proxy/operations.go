package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/upstream"
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

// decode reads the request of an operation into a call. segment is the text of the first variable segment of the path, members are those of
// the body of a write. Beside the call it returns how many ids it has.
func (rc *requestContext) decode(op mapping.Operation, segment string, members mapping.Members) (upstream.Call, int, error) {
	switch op {
	case mapping.OpFlagTypes:
		request, err := rc.flagTypesRequest(segment)
		return upstream.Call{FlagTypes: &request}, 0, err
	case mapping.OpCreateFlagType:
		request, err := mapping.DecodeFlagTypeCreate(members)
		request.SetDefaults()
		return upstream.Call{CreateFlagType: &request}, 0, err
	case mapping.OpUpdateFlagTypes:
		request, err := mapping.DecodeFlagTypeUpdate(segment, members)
		return upstream.Call{UpdateFlagTypes: &request}, len(request.IDs) + len(request.Names), err
	case mapping.OpBugAttachments, mapping.OpAttachment:
		return rc.decodeAttachments(segment)
	case mapping.OpCreateAttachment:
		request, err := mapping.DecodeAttachmentCreate(segment, members, rc.blobs)
		rc.content, rc.record.Conflict = request.Data, err == nil && request.Conflict
		request.SetDefaults()
		return upstream.Call{CreateAttachment: &request}, len(request.Bugs), err
	case mapping.OpUpdateAttachments:
		request, err := mapping.DecodeAttachmentUpdate(segment, members)
		request.SetDefaults()
		return upstream.Call{UpdateAttachments: &request}, len(request.IDs), err
	}
	return upstream.Call{}, 0, rc.noResource()
}

// flagTypesRequest reads the rest of the path. The component may come from the query, which is the way around a slash in a name
// (tracker-behaviour.md section 1, Encoded characters).
func (rc *requestContext) flagTypesRequest(product string) (request mapping.FlagTypesRequest, err error) {
	request.Product = product
	if len(rc.segments) > 1 {
		request.Component, err = rc.segment(1)
		return request, err
	}
	components := rc.query.all("component")
	if len(components) > 1 {
		return request, mapping.Refuse(mapping.CodeNotFound, "Flag types can be asked for one component only.")
	}
	request.Component = cmp.Or(components...)
	return request, nil
}

// decodeAttachments joins the path with ids and attachment_ids of the query (tracker-behaviour.md section 5).
func (rc *requestContext) decodeAttachments(segment string) (upstream.Call, int, error) {
	request := mapping.AttachmentsRequest{
		Bugs: rc.query.all("ids"), Attachments: rc.query.all("attachment_ids"),
		Include: rc.query.fieldNames("include_fields"), Exclude: rc.query.fieldNames("exclude_fields"),
	}
	switch {
	case len(rc.segments) == 0: // a call of an older interface, which has it in the query, too
	case rc.record.Operation == mapping.OpBugAttachments:
		request.Bugs = slices.Insert(request.Bugs, 0, segment)
	default:
		request.Attachments = slices.Insert(request.Attachments, 0, segment)
	}
	if rc.form.plain() {
		// A stock tracker does not know weak tags, which compressed responses have. Tags are compared weakly anyway (RFC 9110, section 13.1.2).
		request.IfNoneMatch = strings.ReplaceAll(rc.r.Header.Get("If-None-Match"), `W/"`, `"`)
	}
	return upstream.Call{Attachments: &request}, len(request.Bugs) + len(request.Attachments), request.Validate()
}

// segment returns the text of a variable path segment, its escapes decoded once. Text that is not UTF-8 is Latin-1, as in a query:
// that is the form by which clients reach products with such names on a stock tracker. NUL is in no name.
func (rc *requestContext) segment(i int) (string, error) {
	text, err := url.PathUnescape(rc.segments[i].Value)
	switch {
	case err != nil || strings.ContainsRune(text, 0):
		return "", badPath()
	case !utf8.ValidString(text):
		return latin1(text), nil
	}
	return text, nil
}

// badPath is the error for a path that cannot be understood.
func badPath() *mapping.Error { return mapping.Refuse(mapping.CodeJSON, "The path is malformed.") }

const alphanumerics = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

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
