package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"portico/mapping"
	"portico/upstream"
)

// Passthrough says what happens to requests outside the seven operations. The zero value lets nothing through.
type Passthrough struct {
	// Base is the address of the tracker's front page. Nil lets nothing through.
	Base *url.URL
	// Transport carries the requests. It must leave bodies as they are, so it must not ask for compression by itself, and it
	// tells httptrace of its connections.
	Transport http.RoundTripper
	// Prefixes are the paths that pass, "/" for all of them. A prefix ends where a segment does.
	Prefixes []string
	// Names are hosts, with a port where it is unusual, that the tracker calls itself besides that of Base. Redirects to
	// them are turned to the name that the client used.
	Names []string
	// HeaderCredentials tells whether the tracker reads credentials in headers. Where it does not, those of REST requests
	// are given as query parameters too. Nil means that it does.
	HeaderCredentials func(context.Context) bool
	// Choose gives the target of one request, by who asks and whether it may change something; nil, or a nil result, is the
	// one that the fields above describe. It must not wait for a tracker.
	Choose func(caller upstream.Caller, write bool) *Target
	// FlagTypesChanging is called with every request that may change flag types behind Portico's back; nil is nobody. It
	// must make the call, which sends the request and says by its error what became of it, as the operations of a Tracker
	// do: nil for what was carried out, or may have been. The client gets the answer when both have returned. A request
	// without any credential comes here only after it was carried out, with a call that does nothing.
	FlagTypesChanging func(ctx context.Context, call func() error) error
	// Failure gives the error that a client sees of an error of Transport, where that knows more than net/http does; nil,
	// or a nil result, leaves it to this package.
	Failure func(err error, write bool) *mapping.Error
}

func (p Passthrough) check() error {
	if p.Base == nil {
		return nil
	}
	return p.usual().check()
}

// allows tells whether a normal path may pass.
func (p Passthrough) allows(path string) bool {
	if p.Base == nil {
		return false
	}
	for _, prefix := range p.Prefixes {
		rest, found := strings.CutPrefix(path, prefix)
		if found && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/")) {
			return true
		}
	}
	return false
}

// passthrough makes the handler that sends requests to the tracker, whole, and streams answers back. It never follows a redirect.
func (s *Server) passthrough() http.Handler {
	if s.options.Passthrough.Base == nil {
		return http.NotFoundHandler()
	}
	reverse := &httputil.ReverseProxy{
		Rewrite:        s.rewrite,
		Transport:      changing{s, chosen{}},
		ModifyResponse: s.modifyResponse,
		ErrorHandler:   s.passingFailed,
		BufferPool:     &copyBuffers{},
		FlushInterval:  -1, // every piece goes out as it comes
		ErrorLog:       slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recordOf(r.Context()).Operation = OpPassthrough
		outgoing, err := s.withBody(r)
		if err != nil {
			x := s.exchange(w.(*recorder), r, OpPassthrough)
			x.fail(x.bodyError(err))
			return
		}
		defer outgoing.Body.Close()
		if err := s.lookInto(outgoing); err != nil {
			x := s.exchange(w.(*recorder), r, OpPassthrough)
			x.fail(x.bodyError(err))
			return
		}
		passingOf(outgoing).target = s.choose(outgoing)
		recordOf(r.Context()).handed = !isReading(r.Method)
		reverse.ServeHTTP(w, outgoing)
	})
}

// lookInto notes what the body of a request says beside what it is for.
func (s *Server) lookInto(r *http.Request) error {
	if err := withBodyCredentials(r); err != nil {
		return err
	}
	return s.lookAtChange(r)
}

// modifyResponse takes out of an answer what would lead the client past Portico.
func (s *Server) modifyResponse(response *http.Response) error {
	response.Header.Del(headerRequestID) // Portico has set its own
	target := passingOf(response.Request).target
	target.redirect(response)
	target.cookies(response)
	path, _ := target.belowBase(response.Request.URL.EscapedPath())
	if isPreflight(response.Request) && isREST(path) && response.Header.Get("Access-Control-Allow-Headers") != "" {
		response.Header.Set("Access-Control-Allow-Headers", preflightHeaders)
	}
	return nil
}

// passingFailed answers for a request that could not be passed on, or not be answered.
func (s *Server) passingFailed(w http.ResponseWriter, r *http.Request, err error) {
	x := s.exchange(w.(*recorder), r, OpPassthrough)
	x.fail(s.passError(r, err))
}

func (s *Server) passError(r *http.Request, err error) error {
	var known *mapping.Error
	var outOfTime net.Error
	var dialing *net.OpError
	write := !isReading(r.Method) || ChangesByLink(r)
	switch {
	case errors.As(err, &known):
		return known
	case r.Context().Err() != nil:
		return r.Context().Err()
	}
	if s.options.Passthrough.Failure != nil {
		if failed := s.options.Passthrough.Failure(err, write); failed != nil {
			return failed
		}
	}
	failed := failure(mapping.CodeBadGateway, mapping.ReasonUnreachable, "The tracker cannot be reached.", err)
	failed.Unknown = write && !(errors.As(err, &dialing) && dialing.Op == "dial")
	if errors.As(err, &outOfTime) && outOfTime.Timeout() {
		failed.Code, failed.Status = mapping.CodeTimeout, http.StatusGatewayTimeout
		failed.Reason, failed.Message = mapping.ReasonTimeout, "The tracker did not answer in time."
	}
	return failed
}

func isReading(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// copyBuffers lends the buffers of bodies on their way.
type copyBuffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *copyBuffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (b *copyBuffers) Put(buffer []byte) { b.pool.Put(&buffer) }
