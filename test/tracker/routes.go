package tracker

import "strings"

// route is what one method does on one pattern of paths; "*" in the pattern stands for one segment, of which path makes
// parameters.
type route struct {
	method, pattern string
	operation       *operation
	path            pathParams
}

type pathParams func(s *Server, seg []string) object

// match is a route found for a request.
type match struct {
	operation *operation
	params    object
}

// find looks for the operation of a method and a path; when the path is known and the method is not, options lists the methods.
func (s *Server) find(method, path string) (m *match, options []string) {
	routes := bugzilla5Routes
	if s.mojolicious() {
		routes = mojoRoutes
	}
	for _, r := range routes() {
		seg, ok := segments(r.pattern, path)
		if ok && r.method == method {
			m = &match{operation: r.operation, params: object{}}
			if r.path != nil {
				m.params = r.path(s, seg)
			}
			return m, nil
		}
		if ok {
			options = append(options, r.method)
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
// does it for products (tracker-behaviour.md section 1, Non-ASCII).
func productAndComponent(s *Server, seg []string) object {
	p := object{"product": latin1(seg[0])}
	if s.has(QuirkUTF8Path) || s.bmo() {
		p["product"] = readable(seg[0])
	}
	if len(seg) > 1 {
		p["component"] = latin1(seg[1])
		if s.bmo() {
			p["component"] = readable(seg[1])
		}
	}
	return p
}

// idOrName reads the path of a flag type update: digits are an id, everything else is a name (tracker-behaviour.md section 4, Selection).
func idOrName(_ *Server, seg []string) object {
	if strings.Trim(seg[0], "0123456789") == "" {
		return object{"ids": []any{seg[0]}}
	}
	return object{"names": []any{latin1(seg[0])}}
}

// bugzilla5Routes are the REST resources of the 5.x line, in the order in which they are tried.
func bugzilla5Routes() []route {
	return append(commonRoutes(), []route{
		{"POST", "/flag_type", &opFlagTypeCreate, nil},
		{"GET", "/flag_type/*/*", &opFlagTypeGet, productAndComponent},
		{"GET", "/flag_type/*", &opFlagTypeGet, productAndComponent},
		{"PUT", "/flag_type/*", &opFlagTypeUpdate, idOrName},
	}...)
}

// mojoRoutes are those of BMO and Harmony: flag types are only read, under a plural name (tracker-behaviour.md section 14).
func mojoRoutes() []route {
	return append(commonRoutes(), []route{
		{"GET", "/flag_types/*/*", &opFlagTypeGet, productAndComponent},
		{"GET", "/flag_types/*", &opFlagTypeGet, productAndComponent},
		{"GET", "/whoami", &opWhoAmI, nil},
	}...)
}

// commonRoutes are those that all dialects have.
func commonRoutes() []route {
	return []route{
		{"GET", "/bug", &opBugSearch, nil},
		{"POST", "/bug", &opBugCreate, nil},
		{"GET", "/bug/*", &opBugGet, list("ids")},
		{"PUT", "/bug/*", &opBugUpdate, list("ids")},
		{"GET", "/bug/*/comment", &opComments, list("ids")},
		{"POST", "/bug/*/comment", &opCommentCreate, one("id")},
		{"GET", "/bug/*/history", &opHistory, list("ids")},
		{"GET", "/bug/*/attachment", &opAttachmentList, list("ids")},
		{"POST", "/bug/*/attachment", &opAttachmentCreate, list("ids")},
		{"GET", "/bug/attachment/*", &opAttachmentGet, list("attachment_ids")},
		{"PUT", "/bug/attachment/*", &opAttachmentUpdate, list("ids")},
		{"GET", "/field/bug", &opFields, nil},
		{"GET", "/field/bug/*", &opFields, list("names")},
		{"GET", "/product", &opProducts, nil},
		{"GET", "/product/*", &opProducts, list("names")},
		{"GET", "/product_accessible", &opProductIDs, nil},
		{"GET", "/product_selectable", &opProductIDs, nil},
		{"GET", "/user", &opUsers, nil},
		{"GET", "/user/*", &opUsers, list("names")},
		{"GET", "/login", &opLogin, nil},
		{"GET", "/logout", &opLogout, nil},
		{"GET", "/valid_login", &opValidLogin, nil},
		{"GET", "/version", &opVersion, nil},
		{"GET", "/extensions", &opExtensions, nil},
		{"GET", "/parameters", &opParameters, nil},
		{"GET", "/time", &opTime, nil},
	}
}
