package proxy

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Server serves legacy clients. It is an http.Handler, safe for concurrent use, and owns no goroutine.
type Server struct {
	options Options
	router  *httprouter.Router
	rates   *callerRates // nil without limits
	// bodies is for what clients send, and replies for responses that are kept whole, so that neither keeps the other out.
	bodies, replies *memory
	files           *jsonblob.Files
	gzips           compressors
	copies          copyBuffers
	// refused is when a read was refused last, in nanoseconds since 1970.
	refused atomic.Int64
}

const (
	// keptFiles is the number of files for large bodies that are kept for a moment.
	keptFiles = 4
	// keptCopies is the number of buffers for passing responses that are kept.
	keptCopies = 16
)

// New makes a Server.
func New(options Options) (*Server, error) {
	if options.Tracker == nil {
		return nil, errors.New("set up the proxy: it needs a tracker")
	}
	options = options.withDefaults()
	gzips := make(compressors, maxCompressors)
	for range maxCompressors {
		compressor, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails for unknown levels only
		gzips <- compressor                                              // which takes its memory when it is first written to
	}
	return &Server{
		options: options, router: routes(), rates: newCallerRates(options.Rates), bodies: &memory{total: options.Limits.Memory},
		replies: &memory{total: options.Limits.Memory}, files: &jsonblob.Files{Max: keptFiles},
		gzips: gzips, copies: make(copyBuffers, keptCopies),
	}, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rc := s.newContext(w, r)
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		// It may have had a Content-Length as well, which net/http has dropped. An intermediary may have believed that one and take what
		// follows for a part of this request, so nothing may follow (RFC 9112, section 6.1). Of HTTP/1.0 net/http drops Transfer-Encoding.
		rc.set("Connection", "close")
	}
	rc.r = rc.watchBody(r, s.options.ClientPause.Sending)
	if rc.body != nil {
		defer func() {
			if !rc.broken {
				rc.body.drain(2 * s.options.Limits.Body)
			}
			rc.endBody()
		}()
	}
	rc.trace()
	defer rc.finish()
	if err := rc.route(); err != nil {
		rc.fail(err)
	}
	// What is left of a response is sent before its log line is written. A response without a length is left to net/http, which may find
	// it, and so is one to a request with a body that may not have been read.
	if rc.body == nil && rc.Header()["Content-Length"] != nil {
		_ = rc.control.Flush() // a client that is gone needs no error
	}
}

// refusing is for how long after a refusal ServeAtOnce is asked about reads that may be refused, too.
const refusing = time.Second

// MayServeAtOnce reports whether ServeAtOnce should see a request, by the text of it. It is quick.
func (s *Server) MayServeAtOnce(request []byte) bool {
	line, _, _ := bytes.Cut(request, []byte{'\r'})
	return bytes.Contains(line, []byte("/flag_type")) ||
		time.Now().UnixNano()-s.refused.Load() < int64(refusing) && bytes.Contains(line, []byte("/attachment"))
}

// ServeAtOnce serves a read whose response needs no waiting: a flag type read whose response is in the memory of this process, and a read that a
// tracker would refuse now. Otherwise it returns false, having written nothing. Where calls are counted it always returns false, since ServeHTTP would
// count them again.
func (s *Server) ServeAtOnce(w http.ResponseWriter, r *http.Request) bool {
	if s.rates != nil {
		return false
	}
	rc := s.newContext(w, r)
	path, err := normalPath(r.URL.EscapedPath())
	if err != nil || strings.HasSuffix(path, "/") {
		return false
	}
	rc.path = path
	op, known := rc.match()[r.Method]
	rc.record.Operation = op
	if !known || op.IsWrite() || rc.identify() != nil {
		return false
	}
	reply, err := rc.peek(op)
	if errors.Is(err, upstream.ErrNotLocal) {
		return false
	}
	rc.trace()
	defer rc.finish()
	rc.record.Cache = reply.Cache
	rc.reply(reply.Document, err)
	if err := rc.control.Flush(); err != nil { // a client that takes a long response slowly, or goes away, is reported as one
		rc.status, rc.record.Reason, rc.cause = StatusClientGone, mapping.ReasonCanceled, err
	}
	return true
}

// peek returns what needs no waiting of the outcome of a read, or ErrNotLocal.
func (rc *requestContext) peek(op mapping.Operation) (reply mapping.Reply, err error) {
	tracker := rc.server.options.Tracker
	segment, err := rc.segment(0)
	switch {
	case err != nil:
	case op == mapping.OpFlagTypes:
		request, err := rc.flagTypesRequest(segment)
		if peeker, ok := tracker.(upstream.Peeker); ok && err == nil && !wantsFresh(rc.r.Header) {
			return peeker.Peek(rc.r.Context(), rc.caller, request)
		}
	default:
		if _, _, err := rc.decodeAttachments(segment); err == nil {
			return reply, cmp.Or(upstream.Refuse(tracker, rc.caller, op), upstream.ErrNotLocal)
		}
	}
	return reply, upstream.ErrNotLocal
}

// trace opens the span of the request, if requests are traced.
func (rc *requestContext) trace() {
	if tracer := rc.server.options.Tracer; tracer != nil {
		ctx, span := tracer.Start(rc.r, rc.start)
		rc.r, rc.span = rc.r.WithContext(ctx), span
	}
}

// finish is deferred: it turns a panic into the failure of this one request, and reports the request.
func (rc *requestContext) finish() {
	cause := recover()
	abort := cause == http.ErrAbortHandler //nolint:errorlint // net/http compares it so, too
	if cause != nil && !abort {
		// Of the value only the type is logged, unless the runtime made it: it might hold a credential.
		what := fmt.Sprintf("%T", cause)
		if known, ok := cause.(runtime.Error); ok {
			what = known.Error()
		}
		rc.server.options.Logger.Error("a request panicked", slog.String("id", rc.record.ID),
			slog.String("panic", what), slog.String("stack", string(debug.Stack())))
		rc.record.Reason = mapping.ReasonInternal
		if abort = rc.status != 0; !abort {
			rc.fail(errors.New("panic"))
		}
	}
	if abort { // by the client, where no other reason is known
		rc.record.Reason = cmp.Or(rc.record.Reason, mapping.ReasonCanceled)
	}
	rc.report()
	if abort {
		rc.broken = true
		// Some clients send a write again if its connection ends before the first byte of a response. In HTTP/1.0 a response
		// without a length would look whole.
		if rc.r.ProtoAtLeast(1, 1) || rc.Header()["Content-Length"] != nil {
			_ = rc.control.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// Observer is told of requests. Implementations are safe for concurrent use and quick.
type Observer interface {
	// Finished is called once for every request, after its last byte.
	Finished(Record)
}

// Tracer traces requests. Implementations are safe for concurrent use and quick.
type Tracer interface {
	// Start opens the span of a request that arrived at a time, as a part of what its header traceparent names. Calls to
	// trackers that are made with the context it returns are parts of the request.
	Start(r *http.Request, arrived time.Time) (context.Context, Span)
}

// Span is the span of one request.
type Span interface {
	// End is called once for every request, after its last byte.
	End(Record)
	// TraceID is the id of the trace in hexadecimal digits, and whether the collector gets the trace.
	TraceID() (id string, sampled bool)
}

// Names of what is not one of the seven operations in Record.Operation.
const (
	// OpPassthrough is a request that streamed through to the tracker.
	OpPassthrough mapping.Operation = "passthrough"
	// OpOptions asks for the methods of a path.
	OpOptions mapping.Operation = "options"
	// OpNone is a request that Portico does not serve.
	OpNone mapping.Operation = "none"
)

// StatusClientGone is the status in the record of a request whose client did not wait for the response. Only a client that closed
// its own side of the connection alone can see it.
const StatusClientGone = 499

// Record says what became of one request. It holds no credential.
type Record struct {
	// ID is the request's id: the client's own where it is harmless, else a random one.
	ID string
	// Operation is one of the seven, or one of the names of this package.
	Operation mapping.Operation
	// Route is the pattern of the path below /rest, empty for what is not one of the seven operations.
	Route string
	// Status is the HTTP status of the response.
	Status int
	// Reason is why Portico itself responded with an error, else empty.
	Reason mapping.Reason
	// Cache says how the cache came by the response; nil where no cache was asked.
	Cache *mapping.CacheInfo
	// Conflict says that ids of an attachment create did not name the bug of the path, which won.
	Conflict bool
	// Sampled says that the collector gets the trace.
	Sampled bool
	// Duration is from the first byte of the request's body to the last of the response.
	Duration time.Duration
	// Bytes are those of the response's body.
	Bytes int64
	// TraceID is the id of the trace, empty for none.
	TraceID string
}

// CacheOutcome is the one word that the log line and metrics have for Cache, empty where no cache was asked.
func (record *Record) CacheOutcome() string {
	info := record.Cache
	switch {
	case info == nil:
		return ""
	case info.Hit && info.Stale:
		return "stale"
	case info.Hit:
		return "hit"
	}
	return cmp.Or(info.Forward, "miss")
}

// report closes the record of a request.
func (rc *requestContext) report() {
	record, now := &rc.record, time.Now()
	record.Status, record.Bytes, record.Duration = rc.status, rc.bytes, now.Sub(rc.start)
	record.Route = record.Operation.Path()
	if record.Operation == mapping.OpFlagTypes && len(rc.segments) < 2 {
		record.Route = strings.TrimSuffix(record.Route, "/{component}")
	}
	if record.Reason == mapping.ReasonCanceled && rc.r.Context().Err() != nil {
		record.Status = StatusClientGone
	}
	if rc.span != nil {
		record.TraceID, record.Sampled = rc.span.TraceID()
	}
	rc.log(now)
	if observer := rc.server.options.Observer; observer != nil {
		observer.Finished(*record)
	}
	if rc.span != nil {
		rc.span.End(*record)
	}
}
