package proxy

import (
	"context"
	"net/http"
	"time"
)

// Tracer follows requests for an operator's tracing system. Implementations are safe for concurrent use and quick.
type Tracer interface {
	// Start begins to follow a request that arrived at a time, as a part of what its header traceparent names. Calls to
	// trackers that are made with the context it gives are parts of the request.
	Start(r *http.Request, arrived time.Time) (context.Context, Span)
}

// Span is one request that is followed.
type Span interface {
	// End is called once for every request, after its last byte.
	End(Record)
}

// follow opens the span of a request, if anybody wants to know, and gives the context that carries it.
func (s *Server) follow(r *http.Request, record *Record) context.Context {
	if s.options.Tracer == nil {
		return r.Context()
	}
	ctx, span := s.options.Tracer.Start(r, time.Now())
	record.span = span
	return ctx
}

// followed closes the span of a request. One of the short way has none so far, since it may have been declined, and asks no
// tracker.
func (s *Server) followed(r *http.Request, record *Record, start time.Time) {
	if record.span == nil {
		_, record.span = s.options.Tracer.Start(r, start)
	}
	record.span.End(*record)
}
