package proxy

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"portico/upstream"
)

// MethodName returns a known method, and other in place of any other text, which could be a credential.
func MethodName(method, other string) string {
	if strings.Contains(" GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE ", " "+method+" ") {
		return method
	}
	return other
}

// log writes the one line of a request. The query is left out, since credentials travel there.
func (rc *requestContext) log(now time.Time) {
	record, level, cause := &rc.record, slog.LevelInfo, ""
	if record.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	ctx, handler := rc.r.Context(), rc.server.options.Logger.Handler()
	if !handler.Enabled(ctx, level) {
		return
	}
	if own, ok := handler.(*logHandler); ok && level < slog.LevelWarn {
		handler = own.batched
	}
	if rc.cause != nil {
		cause = rc.cause.Error()
		// Errors of HTTP clients name the URL, and credentials travel in the query of a tracker's.
		if address, ok := errors.AsType[*url.Error](rc.cause); ok {
			cause = address.Op + ": " + address.Err.Error()
		}
	}
	// A record is made here because Logger finds out its caller, whether the handler uses that or not.
	line := slog.NewRecord(now, level, "request", 0)
	line.AddAttrs(
		slog.String("id", record.ID), slog.String("client", rc.caller.Address),
		slog.String("method", MethodName(rc.r.Method, "OTHER")), slog.String("path", cut(withoutCredential(rc.r.URL.EscapedPath()), 256)),
		slog.String("operation", string(record.Operation)), slog.Int("status", record.Status),
		slog.String("duration", record.Duration.String()), slog.Int64("bytes", record.Bytes),
		optional("cache", record.CacheOutcome()), optional("reason", string(record.Reason)), optional("cause", cause), optional("trace_id", record.TraceID),
	)
	if record.Conflict {
		line.AddAttrs(slog.Bool("ids_conflict", true))
	}
	_ = handler.Handle(ctx, line) // Logger drops the error, too
}

// optional is an attribute, or the empty one, which handlers leave out.
func optional(name, text string) slog.Attr {
	if text == "" {
		return slog.Attr{}
	}
	return slog.String(name, text)
}

// withoutCredential ends a path behind the name of a credential, in the first of its readings that has one. A query whose question
// mark was escaped, or written as something else, is a part of the path.
func withoutCredential(escaped string) string {
	if !strings.ContainsAny(escaped, ":=%") {
		return escaped
	}
	kept := "…"
	if anyReading(escaped, func(reading string) bool {
		end := upstream.EndAtCredential(reading)
		if end != reading {
			kept = end
		}
		return end != reading
	}) {
		return kept
	}
	return escaped
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}

// maxLogDelay bounds how long the line of a request waits for others. A crash loses no more than the lines of this time.
const maxLogDelay = 2 * time.Millisecond

// LogHandler returns the handler of a log that format makes of a writer. The lines of requests that come within maxLogDelay go to w in one write.
// Every other line, and that of a request that failed, is written at once, behind what waits.
func LogHandler(w io.Writer, format func(io.Writer) slog.Handler) slog.Handler {
	batch := &logBatch{w: w}
	return &logHandler{Handler: format(batch), batched: format(batchedLines{batch})}
}

type logHandler struct {
	slog.Handler
	batched slog.Handler
}

// logBatch has the lines that wait. It writes through what it gets.
type logBatch struct {
	w     io.Writer
	mu    sync.Mutex
	lines []byte
}

// Write implements io.Writer.
func (b *logBatch) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.w.Write(append(b.lines, line...))
	b.lines = b.lines[:0]
	return len(line), err
}

// batchedLines lets lines wait.
type batchedLines struct{ *logBatch }

// Write implements io.Writer.
func (b batchedLines) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == 0 {
		time.AfterFunc(maxLogDelay, func() { _, _ = b.logBatch.Write(nil) }) // a log has nowhere to report its error
	}
	b.lines = append(b.lines, line...)
	return len(line), nil
}
