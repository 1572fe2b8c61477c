package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// Responses chooses the form of replies.
type Responses string

// The forms of replies (DESIGN.md, section 5).
const (
	// ResponsesTracker keeps the tracker's own forms, booleans as 0 and 1 among them.
	ResponsesTracker Responses = "tracker"
	// ResponsesInterface gives the forms and names of interface.md.
	ResponsesInterface Responses = "interface"
)

// Options says what a Server is made of. Only Tracker is required.
type Options struct {
	// Tracker carries out the seven operations.
	Tracker upstream.Tracker
	// Passthrough says what happens to every other request.
	Passthrough Passthrough
	// Revalidate marks the context of a flag type read whose client asks for an answer that is not from a cache; nil ignores
	// the wish.
	Revalidate func(context.Context) context.Context
	// Responses is the form of replies; empty is ResponsesTracker.
	Responses Responses
	// Limits bound one request.
	Limits Limits
	// Rates bound how often one caller may ask; the zero value bounds nobody.
	Rates RateLimits
	// Replays remember creates that came with an Idempotency-Key; nil keeps them for this Server alone.
	Replays *Replays
	// BlobDir is where large payloads wait; empty is the system's own place.
	BlobDir string
	// ReadTimeout and WriteTimeout bound how long the tracker may take to begin its answer to a reading or writing
	// operation; 0 is one minute.
	ReadTimeout, WriteTimeout time.Duration
	// ClientPause bounds how long a client may do nothing. It bounds the pause and not the whole, so that a slow but steady
	// upload survives.
	ClientPause ClientPause
	// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
	TrustedProxies []netip.Prefix
	// DocumentationURL is the documentation member of errors; empty is mapping.DocumentationURL.
	DocumentationURL string
	// Logger gets one line per request; nil is silence.
	Logger *slog.Logger
	// Observer is told of every finished request; nil is nobody.
	Observer Observer
	// Tracer follows every request; nil is nobody.
	Tracer Tracer
}

// ClientPause bounds the pauses of a client.
type ClientPause struct {
	// Sending bounds those within a request body, Taking those within a reply; 0 is 30 seconds.
	Sending, Taking time.Duration
}

// Limits bound what one request may ask for.
type Limits struct {
	// Limits are those of a body.
	mapping.Limits
	// IDs is the largest number of ids, names or aliases in one request; 0 is 1000.
	IDs int
	// URI is the largest request target in bytes; 0 is 8190, as for a tracker behind Apache (wire-facts.md, section 1).
	URI int
	// Memory is what the bodies of all requests together may take up in memory while they are looked at, payloads and the
	// first 64 KiB of each not counted; 0 is 64 MiB.
	Memory int64
}

const (
	defaultIDs     = 1000
	defaultURI     = 8190
	defaultMemory  = 64 << 20
	defaultTimeout = time.Minute
	defaultPause   = 30 * time.Second
)

// withDefaults checks the options and fills what was left out.
func (o Options) withDefaults() (Options, error) {
	if o.Tracker == nil {
		return o, errors.New("a proxy needs a tracker")
	}
	setDefault(&o.Responses, ResponsesTracker)
	if o.Responses != ResponsesTracker && o.Responses != ResponsesInterface {
		return o, fmt.Errorf("responses are %q or %q, not %q", ResponsesTracker, ResponsesInterface, o.Responses)
	}
	setDefault(&o.Limits.IDs, defaultIDs)
	setDefault(&o.Limits.URI, defaultURI)
	setDefault(&o.Limits.Memory, defaultMemory)
	o.Limits.Limits = o.Limits.Limits.WithDefaults()
	setDefault(&o.ReadTimeout, defaultTimeout)
	setDefault(&o.WriteTimeout, defaultTimeout)
	setDefault(&o.ClientPause.Sending, defaultPause)
	setDefault(&o.ClientPause.Taking, defaultPause)
	setDefault(&o.DocumentationURL, mapping.DocumentationURL)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Replays == nil {
		o.Replays = NewReplays(nil, nil)
	}
	return o, o.Passthrough.check()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
