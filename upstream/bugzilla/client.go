package bugzilla

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/go-resty/resty/v2"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/transport"
)

// Options configure a Client. URL and Transport are required.
type Options struct {
	// URL is the tracker's base, the part before /rest.
	URL *url.URL
	// Dialect is auto or the name of one; empty is auto, which sends
	// GET /rest/version once.
	Dialect string
	// Transport sends requests; Client does not close it. A *transport.Stack has slots, for which calls wait before they begin.
	Transport http.RoundTripper
	// ForComparison gives calls the lowest priority, and abandons a response of which only a part is to be read.
	ForComparison bool
	// HideKeys sends reads that carry a credential by JSON-RPC where the tracker
	// would otherwise get it in the query, which its web server logs.
	HideKeys bool
	// MaxBody is the largest request body to send; 0 is the dialect's.
	MaxBody int64
	// Split bounds what a reply may cost in memory when it is looked into.
	Split jsonblob.SplitOptions
	// Keys returns the caller as the tracker is to see it, or the error of a call that must not be sent; nil changes nothing.
	Keys func(upstream.Caller) (upstream.Caller, error)
	// Logger defaults to discarding.
	Logger *slog.Logger
}

// Client is an upstream.Tracker over one tracker.
type Client struct {
	options Options
	base    string
	rest    *resty.Client
	// redirect is the address to which the tracker redirects all requests.
	redirect redirectTarget
	dialect  atomic.Pointer[knownDialect]
	// asking holds a value while a caller requests the version.
	asking chan struct{}
}

// New makes a client. It fails on a URL that no request could be built from.
func New(options Options) (*Client, error) {
	if options.URL == nil || options.URL.Host == "" || options.Transport == nil {
		return nil, errors.New("a tracker's client needs an absolute URL and a transport")
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	client := &Client{options: options, base: strings.TrimRight(options.URL.String(), "/"), asking: make(chan struct{}, 1)}
	client.redirect.Store(new(string))
	client.rest = newREST(redirects{options.Transport, &client.redirect})
	dialect, err := firstDialect(options.Dialect)
	client.dialect.Store(dialect)
	return client, err
}

// Do implements upstream.Tracker. The path's bug of an attachment create may have to be looked up first.
func (c *Client) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.CreateAttachment != nil {
		call = call.Copy()
		if err := c.resolvePathBug(ctx, caller, call.CreateAttachment); err != nil {
			return mapping.Reply{}, err
		}
	}
	if call.Guard != nil || call.MaxResponse > 0 {
		ctx = transport.With(ctx, func(t *transport.Call) { t.Guard, t.MaxBody = call.Guard, call.MaxResponse })
	}
	planned, err := plan(c.Dialect(ctx), call)
	document, err := c.document(ctx, caller, planned, err)
	if err != nil {
		return mapping.Reply{}, err
	}
	if err = c.complete(document, &call); err != nil {
		return mapping.Reply{}, failure(&planned, errors.Join(err, document.Close()))
	}
	return mapping.Reply{Document: document}, nil
}

// Refuse implements upstream.Refuser.
func (c *Client) Refuse(caller upstream.Caller, operation mapping.Operation) error {
	if limited, ok := c.options.Transport.(*transport.Stack); ok {
		if err := limited.Refuse(transport.Call{Operation: string(operation), Client: caller.Identity()}); err != nil {
			return failure(&Call{Operation: operation}, err)
		}
	}
	return nil
}

// complete gives a response the form that Portico promises. The members and inclusions of flag types come in random order; the reply
// has one form with one strong tag (tracker-behaviour.md section 2), and no cookies.
func (c *Client) complete(document *mapping.Document, call *upstream.Call) (err error) {
	switch {
	case call.FlagTypes != nil:
		document.Cookies = nil
		if _, err = document.Load(c.options.Split); err != nil {
			return err
		}
		if err = document.Stabilize(); err != nil {
			err = bad("the tracker's response holds no flag types: " + err.Error())
		}
	case call.CreateFlagType != nil:
		err = document.WithFlagID()
	case call.CreateAttachment != nil:
		document.PathWon = call.CreateAttachment.Conflict
		err = document.WithCreatedIDs()
	}
	return err
}
