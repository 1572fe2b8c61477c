package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
)

// anyMethod is the one method that routes are registered under. A path is looked up first and the method afterwards,
// because a real tracker never answers 405 and has answers of its own for HEAD and OPTIONS.
const anyMethod = "ANY"

// operation is one of the seven: its name, and what carries it out.
type operation struct {
	name mapping.Operation
	run  func(*exchange) (answer, error)
}

// resource is what a path stands for: an operation for each method that it has.
type resource map[string]operation

// routes registers the resources of interface.md, under both names that a tracker has for them.
func (s *Server) routes() *httprouter.Router {
	router := httprouter.New()
	for _, root := range []string{"/rest", "/rest.cgi"} {
		router.Handle(anyMethod, root+"/flag_type", s.serve(resource{
			http.MethodPost: {mapping.OpCreateFlagType, (*exchange).createFlagType},
		}))
		router.Handle(anyMethod, root+"/flag_type/:product", s.serve(resource{
			http.MethodGet: {mapping.OpFlagTypes, (*exchange).flagTypes},
			http.MethodPut: {mapping.OpUpdateFlagTypes, (*exchange).updateFlagTypes},
		}))
		router.Handle(anyMethod, root+"/flag_type/:product/:component", s.serve(resource{
			http.MethodGet: {mapping.OpFlagTypes, (*exchange).flagTypes},
		}))
		router.Handle(anyMethod, root+"/bug/:a/:b", s.serveBug())
	}
	return router
}

// serveBug tells the two resources below /bug apart, which one router cannot: attachments of a bug come first, so
// /bug/attachment/attachment is those of the bug whose alias is "attachment", as for a real tracker.
func (s *Server) serveBug() httprouter.Handle {
	byBug := s.serve(resource{
		http.MethodGet:  {mapping.OpBugAttachments, (*exchange).bugAttachments},
		http.MethodPost: {mapping.OpCreateAttachment, (*exchange).createAttachment},
	})
	byID := s.serve(resource{
		http.MethodGet: {mapping.OpAttachment, (*exchange).attachment},
		http.MethodPut: {mapping.OpUpdateAttachments, (*exchange).updateAttachments},
	})
	return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		switch {
		case params.ByName("b") == "attachment":
			byBug(w, r, params[:1])
		case params.ByName("a") == "attachment":
			byID(w, r, params[1:])
		default:
			s.pass(w, r)
		}
	}
}

// route finds out who answers. From here on the path of the request's URL is the normal one, still escaped.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if len(r.RequestURI) > s.options.Limits.URI {
		message := fmt.Sprintf("The address is longer than %d bytes.", s.options.Limits.URI)
		s.refuse(w, r, tooLarge(mapping.CodeURILong, message, nil))
		return
	}
	path, err := normalPath(r.URL.EscapedPath())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	r = withPath(r, path)
	handle, params, _ := s.router.Lookup(anyMethod, strings.TrimSuffix(path, "/"))
	if handle == nil {
		if w.(*recorder).declines() {
			return
		}
		s.pass(w, r)
		return
	}
	handle(w, r, params)
}

// withPath gives a request whose path is the escaped one, a copy where it differs.
func withPath(r *http.Request, path string) *http.Request {
	if r.URL.Path == path && r.URL.RawPath == "" {
		return r
	}
	routed := *r
	address := *r.URL
	address.Path, address.RawPath = path, ""
	routed.URL = &address
	return &routed
}

// serve answers for one resource. A trailing slash and every method that it does not have are as good as another path
// (wire-facts.md, section 1, Paths and methods).
func (s *Server) serve(of resource) httprouter.Handle {
	methods := strings.Join(slices.Sorted(maps.Keys(of)), ", ")
	return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		op, ok := of[r.Method]
		switch {
		case strings.HasSuffix(r.URL.Path, "/"):
			s.refuse(w, r, noResource(r))
		case ok:
			s.perform(w, r, params, op)
		case r.Method == http.MethodOptions:
			s.answerOptions(w, r, methods)
		default:
			s.refuse(w, r, noResource(r))
		}
	}
}

// pass sends what is not one of the seven operations through, except what would edit bugs by mistake, what leaves the
// tracker's own paths, and methods that are no use but to an attacker.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	forbidden := r.Method == http.MethodTrace || r.Method == http.MethodConnect ||
		climbs(path) || !isReading(r.Method) && editsBugs(path)
	if forbidden || !s.options.Passthrough.allows(path) {
		s.refuse(w, r, noResource(r))
		return
	}
	unproved, err := s.admitPassing(r)
	if err != nil {
		s.exchange(w.(*recorder), r, OpPassthrough).fail(err)
		return
	}
	s.through.ServeHTTP(w, r)
	s.passed(unproved, r, w.(*recorder).status)
}

// answerOptions tells the methods of a resource, to anybody (wire-facts.md, section 1).
func (s *Server) answerOptions(w http.ResponseWriter, r *http.Request, methods string) {
	x := s.exchange(w.(*recorder), r, OpOptions)
	header := w.Header()
	header.Set("Allow", methods)
	header.Set("Access-Control-Allow-Methods", methods)
	if isPreflight(r) {
		header.Set("Access-Control-Allow-Headers", preflightHeaders)
	}
	_ = x.write(http.StatusOK, mapping.NewDocument([]byte("{}"))) // nobody is left to tell of a failure
}

// refuse answers a request that is no operation with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.exchange(w.(*recorder), r, OpNone).fail(err)
}

// noResource is the error for a path or method that nothing answers.
func noResource(r *http.Request) *mapping.Error {
	path, err := url.PathUnescape(r.URL.Path)
	if err != nil {
		path = r.URL.Path
	}
	for _, root := range []string{"/rest.cgi", "/rest"} {
		if rest, ok := strings.CutPrefix(path, root); ok && (rest == "" || rest[0] == '/') {
			path = rest
			break
		}
	}
	return mapping.NoResource(cut(r.Method, 64), cut(path, 1024))
}
