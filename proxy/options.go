package proxy

import (
	"context"
	"log/slog"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Responses chooses the form of replies.
type Responses string

// The forms of replies.
const (
	// ResponsesTracker keeps the tracker's own forms, booleans as 0 and 1 among them.
	ResponsesTracker Responses = "tracker"
	// ResponsesInterface gives the forms and names of interface.md.
	ResponsesInterface Responses = "interface"
)

// Options configure a Server. Only Tracker is required.
type Options struct {
	// Tracker carries out the seven operations. If it is an upstream.Peeker, it serves ServeAtOnce too, and an upstream.Refuser refuses there.
	Tracker upstream.Tracker
	// Passthrough says what happens to every other request.
	Passthrough Passthrough
	// FlagTypeWrites reports whether a tracker can create and update flag types. Where none can, such a request is refused
	// before all other checks. Nil means that one can.
	FlagTypeWrites func(context.Context) bool
	// Responses is the form of replies; empty is ResponsesTracker.
	Responses Responses
	// Limits bound one request.
	Limits Limits
	// Rates bound how often one caller may call; the zero value bounds no caller.
	Rates RateLimits
	// Idempotency remembers creates that came with an Idempotency-Key; nil is one of this Server alone.
	Idempotency *Idempotency
	// BlobDir is the directory of large payloads; empty is the system's own for temporary files.
	BlobDir string
	// Timeout bounds how long the tracker may take to begin its response to an operation; 0 is one minute.
	Timeout time.Duration
	// ClientPause bounds how long a client may do nothing. It bounds the pause and not the whole, so that a slow but steady
	// upload survives if it comes at 500 bytes a second.
	ClientPause ClientPause
	// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
	TrustedProxies TrustedProxies
	// DocumentationURL is the documentation member of errors; empty is mapping.DocumentationURL.
	DocumentationURL string
	// Logger gets one line per request; nil logs nothing.
	Logger *slog.Logger
	// Observer is told of every finished request; it may be nil.
	Observer Observer
	// Tracer traces every request; it may be nil.
	Tracer Tracer
}

// ClientPause bounds the pauses of a client.
type ClientPause struct {
	// Sending bounds those within a request body, Taking those within a reply; 0 is 30 seconds.
	Sending time.Duration `key:"read" default:"30s" min:"100ms" max:"24h"`
	Taking  time.Duration `key:"write" default:"30s" min:"100ms" max:"24h"`
}

// Limits bound what one request may ask for.
type Limits struct {
	// Limits are those of a body.
	jsonblob.Limits
	// IDs is the largest number of ids, names or aliases in one request; 0 is 1000.
	IDs int
	// Memory is what the bodies of all requests together may take up in memory while they are read and carried out, the first
	// 16 KiB of each not counted; 0 is 64 MiB.
	Memory int64
}

// maxTarget is the largest request target in bytes: that of a tracker behind Apache (tracker-behaviour.md section 1).
const maxTarget = 8190

// withDefaults fills what was left out.
func (o Options) withDefaults() Options {
	setDefault(&o.Limits.IDs, 1000)
	setDefault(&o.Limits.Memory, 64<<20)
	o.Limits.Limits = o.Limits.Limits.WithDefaults()
	setDefault(&o.Timeout, time.Minute)
	setDefault(&o.ClientPause.Sending, 30*time.Second)
	setDefault(&o.ClientPause.Taking, 30*time.Second)
	setDefault(&o.DocumentationURL, mapping.DocumentationURL)
	setDefault(&o.Idempotency, NewIdempotency(nil, nil))
	setDefault(&o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
