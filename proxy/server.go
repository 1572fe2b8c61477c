package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
)

// Server answers legacy clients. It is an http.Handler, safe for concurrent use, and owns no goroutine.
type Server struct {
	options Options
	trusted trustedProxies
	router  *httprouter.Router
	through http.Handler
	usual   *Target
	rates   *callerRates
	memory  *memory
	// creating carries out the two creates.
	creating creating
}

// New makes a Server.
func New(options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("set up the proxy: %w", err)
	}
	s := &Server{options: options, trusted: options.TrustedProxies, rates: newCallerRates(options.Rates)}
	s.memory = &memory{}
	s.memory.left.Store(options.Limits.Memory)
	s.creating = creating{next: options.Tracker, replays: options.Replays}
	s.router = s.routes()
	s.usual = options.Passthrough.usual()
	s.through = s.passthrough()
	return s, nil
}

// ServeHTTP implements http.Handler. It opens the record of the request, and closes it whatever happens.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d, short := w.(*desk); short && !s.isShort(r) {
		d.declined = true
		return
	}
	r, record := s.begin(r)
	recorder := newRecorder(w, s.options.ClientPause.Taking)
	set(recorder.Header(), headerRequestID, record.ID)
	recorder.final = !r.ProtoAtLeast(1, 1)
	if twoLengths(r) {
		set(recorder.Header(), "Connection", "close")
	}
	if r.Body != nil && r.Body != http.NoBody {
		body := &pausedBody{ReadCloser: r.Body, control: recorder.control, pause: s.options.ClientPause.Sending, waits: r.Header.Get("Expect") != ""}
		defer func() {
			if !recorder.broken {
				body.hearOut(2 * s.options.Limits.Body)
			}
			recorder.leave()
		}()
		r.Body, recorder.body = body, body
	}
	defer s.finish(recorder, r, record, time.Now())
	s.route(recorder, r)
}

// begin opens the record of a request. On the short way the request has a place for it already.
func (s *Server) begin(r *http.Request) (*http.Request, *Record) {
	record := recordOf(r.Context())
	if record == nil {
		record = &Record{}
		s.offer(r)
		r = r.WithContext(context.WithValue(s.follow(r, record), recordKey{}, record))
	}
	*record = Record{ID: requestID(get(r.Header, headerRequestID)), Operation: OpNone, client: s.trusted.client(r), span: record.span}
	return r, record
}

// finish is deferred: it turns a panic into the failure of this one request, and closes the record.
func (s *Server) finish(w *recorder, r *http.Request, record *Record, start time.Time) {
	cause := recover()
	if cause == nil && w.desk != nil && w.desk.declined {
		return
	}
	failed, _ := cause.(error)
	abort := errors.Is(failed, http.ErrAbortHandler)
	if cause != nil && !abort {
		s.logPanic(record, cause)
		abort = w.status != 0
		if !abort {
			x := s.exchange(w, r, OpNone)
			x.fail(internal(record.handed, nil))
		}
	}
	record.Status, record.Bytes, record.Duration = w.status, w.bytes, time.Since(start)
	if !abort {
		w.deliver()
	}
	if record.Reason == mapping.ReasonCanceled && r.Context().Err() != nil {
		record.Status = StatusClientGone
	}
	record.log(s.options.Logger, r)
	s.options.Observer.Finished(*record)
	if s.options.Tracer != nil {
		s.followed(r, record, start)
	}
	if abort {
		w.broken = true
		w.breakOff()
		panic(http.ErrAbortHandler)
	}
}

// logPanic tells where it happened, and what only if the runtime says so: any other value might hold a credential.
func (s *Server) logPanic(record *Record, cause any) {
	what := fmt.Sprintf("%T", cause)
	if known, ok := cause.(runtime.Error); ok {
		what = known.Error()
	}
	s.options.Logger.Error("a request panicked", slog.String("id", record.ID),
		slog.String("panic", what), slog.String("stack", string(debug.Stack())))
}
