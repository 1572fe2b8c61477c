package tracker

import (
	"maps"
	"slices"
	"strings"
)

// resource is one pattern of paths; "*" in it stands for one segment.
type resource struct {
	pattern string
	methods map[string]endpoint
}

// endpoint is what one method does on a resource. Its path function makes parameters of the segments that the stars stand for.
type endpoint struct {
	operation *operation
	path      pathParams
}

type pathParams func(s *Server, seg []string) object

// match is a resource found for a request.
type match struct {
	operation *operation
	params    object
}

// find looks for the operation of a method and a path; when the path is known and the method is not, options lists the methods.
func (s *Server) find(method, path string) (m *match, options []string) {
	resources := bugzilla5Resources
	if s.bmo() {
		resources = bmoResources
	}
	for _, res := range resources() {
		seg, ok := segments(res.pattern, path)
		if !ok {
			continue
		}
		if e, ok := res.methods[method]; ok {
			m = &match{operation: e.operation, params: object{}}
			if e.path != nil {
				m.params = e.path(s, seg)
			}
			return m, nil
		}
		if options == nil {
			options = slices.Collect(maps.Keys(res.methods))
		}
	}
	return nil, options
}

func segments(pattern, path string) (seg []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	for i := range want {
		switch {
		case want[i] == "*" && have[i] != "":
			seg = append(seg, have[i])
		case want[i] != have[i]:
			return nil, false
		}
	}
	return seg, true
}

// one makes a parameter of the first segment.
func one(name string) pathParams {
	return func(_ *Server, seg []string) object { return object{name: latin1(seg[0])} }
}

// list makes a list parameter of the first segment, which is joined with the query's on GET and replaced by the body's otherwise.
func list(name string) pathParams {
	return func(_ *Server, seg []string) object { return object{name: []any{latin1(seg[0])}} }
}

// productAndComponent reads the path of a flag type list. The path is not decoded as UTF-8, except that one database driver
// does it for products (wire-facts 1, Non-ASCII).
func productAndComponent(s *Server, seg []string) object {
	p := object{"product": latin1(seg[0])}
	if s.has(QuirkUTF8Path) {
		p["product"] = readable(seg[0])
	}
	if len(seg) > 1 {
		p["component"] = latin1(seg[1])
	}
	return p
}

// idOrName reads the path of a flag type update: digits are an id, everything else is a name (wire-facts 4, Selection).
func idOrName(_ *Server, seg []string) object {
	if strings.Trim(seg[0], "0123456789") == "" {
		return object{"ids": []any{seg[0]}}
	}
	return object{"names": []any{latin1(seg[0])}}
}

// get, post and put make the methods of a resource.
func get(op *operation, path pathParams) map[string]endpoint {
	return map[string]endpoint{"GET": {op, path}}
}

func post(op *operation, path pathParams) map[string]endpoint {
	return map[string]endpoint{"POST": {op, path}}
}

func put(op *operation, path pathParams) map[string]endpoint {
	return map[string]endpoint{"PUT": {op, path}}
}

func both(a, b map[string]endpoint) map[string]endpoint {
	maps.Copy(a, b)
	return a
}

// bugzilla5Resources are the REST resources of the 5.x line, in the order in which they are tried.
func bugzilla5Resources() []resource {
	return append([]resource{
		{"/flag_type", post(&opFlagTypeCreate, nil)},
		{"/flag_type/*/*", get(&opFlagTypeGet, productAndComponent)},
		{"/flag_type/*", both(get(&opFlagTypeGet, productAndComponent), put(&opFlagTypeUpdate, idOrName))},
	}, commonResources()...)
}

// bmoResources are those of BMO: flag types are only read, under a plural name (wire-facts 9).
func bmoResources() []resource {
	return append([]resource{
		{"/flag_types/*/*", get(&opFlagTypeGet, productAndComponent)},
		{"/flag_types/*", get(&opFlagTypeGet, productAndComponent)},
		{"/whoami", get(&opWhoAmI, nil)},
	}, commonResources()...)
}

// commonResources are those that both dialects have.
func commonResources() []resource {
	return []resource{
		{"/bug", get(&opBugSearch, nil)},
		{"/bug/*", both(get(&opBugGet, list("ids")), put(&opBugUpdate, list("ids")))},
		{"/bug/*/comment", both(get(&opComments, list("ids")), post(&opCommentCreate, one("id")))},
		{"/bug/*/history", get(&opHistory, list("ids"))},
		{"/bug/*/attachment", both(get(&opAttachmentList, list("ids")), post(&opAttachmentCreate, list("ids")))},
		{"/bug/attachment/*", both(get(&opAttachmentGet, list("attachment_ids")), put(&opAttachmentUpdate, list("ids")))},
		{"/field/bug", get(&opFields, nil)},
		{"/field/bug/*", get(&opFields, list("names"))},
		{"/product", get(&opProducts, nil)},
		{"/product/*", get(&opProducts, list("names"))},
		{"/product_accessible", get(&opProductIDs, nil)},
		{"/product_selectable", get(&opProductIDs, nil)},
		{"/product_enterable", get(&opEnterableIDs, nil)},
		{"/user", get(&opUsers, nil)},
		{"/user/*", get(&opUsers, list("names"))},
		{"/login", get(&opLogin, nil)},
		{"/logout", get(&opLogout, nil)},
		{"/valid_login", get(&opValidLogin, nil)},
		{"/version", get(&opVersion, nil)},
		{"/extensions", get(&opExtensions, nil)},
		{"/parameters", get(&opParameters, nil)},
		{"/time", get(&opTime, nil)},
	}
}
