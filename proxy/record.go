package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"portico/mapping"
)

// Observer is told of requests. Implementations are safe for concurrent use and quick.
type Observer interface {
	// Finished is called once for every request, after its last byte.
	Finished(Record)
}

type nobody struct{}

func (nobody) Finished(Record) {}

// Names of what is not one of the seven operations in Record.Operation.
const (
	// OpPassthrough is a request that streamed through to the tracker.
	OpPassthrough mapping.Operation = "passthrough"
	// OpOptions is a question for the methods of a path.
	OpOptions mapping.Operation = "options"
	// OpNone is a request that nothing answers.
	OpNone mapping.Operation = "none"
)

// StatusClientGone is the status in the record of a request whose client did not wait for the answer. It is never sent.
const StatusClientGone = 499

// Record tells what became of one request. It holds no credential.
type Record struct {
	// ID is the request's id: the client's own where it is harmless, else a random one.
	ID string
	// Operation is one of the seven, or one of the names of this package.
	Operation mapping.Operation
	// Status is the HTTP status of the answer.
	Status int
	// Reason is why Portico itself answered with an error, else empty.
	Reason mapping.Reason
	// Cache tells how the cache came by the answer; nil where no cache was asked.
	Cache *mapping.CacheInfo
	// Conflict says that ids of an attachment create did not name the bug of the path, which won.
	Conflict bool
	// Duration is from the first byte of the request's body to the last of the answer.
	Duration time.Duration
	// Bytes are those of the answer's body.
	Bytes int64

	client string
	cause  error
	// handed says that the tracker may have got a write: whatever goes wrong from here on, its outcome is not known.
	handed bool
	span   Span // nil where nobody follows the request
}

// CacheOutcome is the one word that the log line has for Cache, empty where no cache was asked.
func (record *Record) CacheOutcome() string {
	if record.Cache == nil {
		return ""
	}
	return cacheWord(record.Cache)
}

type recordKey struct{}

// recordOf finds the record that ServeHTTP opened.
func recordOf(ctx context.Context) *Record {
	record, _ := ctx.Value(recordKey{}).(*Record)
	return record
}

// RequestID gives the id of the request that a context belongs to, empty outside of one.
func RequestID(ctx context.Context) string {
	if record := recordOf(ctx); record != nil {
		return record.ID
	}
	return ""
}

// requestID takes the client's own id if it is short and harmless.
func requestID(offered string) string {
	if offered != "" && len(offered) <= 64 && strings.Trim(offered, idCharacters) == "" {
		return offered
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails
	return hex.EncodeToString(random[:])
}

const idCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+="

// log writes the one line of a request. The query is left out, since credentials travel there.
func (record *Record) log(logger *slog.Logger, r *http.Request) {
	ctx, level := context.WithoutCancel(r.Context()), record.level()
	if !logger.Enabled(ctx, level) {
		return
	}
	// A record of one's own, because Logger looks up who called it, whether the handler wants to know or not.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(
		slog.String("id", record.ID), slog.String("client", record.client),
		slog.String("method", methodWord(r.Method)), slog.String("path", shortPath(r.URL.EscapedPath())),
		slog.String("operation", string(record.Operation)), slog.Int("status", record.Status),
		slog.Duration("duration", record.Duration), slog.Int64("bytes", record.Bytes),
		optional("cache", record.Cache != nil, func() string { return cacheWord(record.Cache) }),
		optional("reason", record.Reason != "", func() string { return string(record.Reason) }),
		optional("cause", record.cause != nil, func() string { return causeText(record.cause) }),
	)
	if record.Conflict {
		line.AddAttrs(slog.Bool("ids_conflict", true))
	}
	_ = logger.Handler().Handle(ctx, line) // as Logger, which has nobody to tell either
}

// methodWord is a method as a log says it: any other text than the known ones could be anything.
func methodWord(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "OTHER"
}

// optional is an attribute, or the empty one, which handlers leave out.
func optional(name string, there bool, text func() string) slog.Attr {
	if !there {
		return slog.Attr{}
	}
	return slog.String(name, text())
}

func (record *Record) level() slog.Level {
	if record.Status >= http.StatusInternalServerError {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// cacheWord is the one word of the cache in a log line and a metric.
func cacheWord(info *mapping.CacheInfo) string {
	switch {
	case info.Hit && info.Stale:
		return "stale"
	case info.Hit:
		return "hit"
	case info.Forward != "":
		return info.Forward
	default:
		return "miss"
	}
}

// shortPath cuts long segments, so that what does not belong in a path does not fill the log, and ends where a credential
// begins.
func shortPath(escaped string) string {
	const segment, whole = 48, 256
	escaped = withoutCredential(escaped)
	if len(escaped) <= segment {
		return escaped
	}
	segments := strings.Split(escaped, "/")
	for i := range segments {
		segments[i] = cut(segments[i], segment)
	}
	return cut(strings.Join(segments, "/"), whole)
}

// withoutCredential ends a path behind the name of a credential. A query whose question mark was escaped, or written as
// something else, is a part of the path.
func withoutCredential(escaped string) string {
	if !strings.ContainsAny(escaped, "=%") {
		return escaped
	}
	end, lower := len(escaped), strings.ToLower(escaped)
	for _, kind := range credentialNames {
		for _, sign := range []string{"=", "%3d"} {
			if at := strings.Index(lower, kind.names[0]+sign); at >= 0 { // the longer name ends with the shorter one
				end = min(end, at+len(kind.names[0])+len(sign))
			}
		}
	}
	if end == len(escaped) {
		return escaped
	}
	return escaped[:end] + "…"
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
