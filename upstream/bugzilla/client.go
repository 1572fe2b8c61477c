package bugzilla

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-resty/resty/v2"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Options configure a Client. URL and Transport are required.
type Options struct {
	// URL is the tracker's base, the part before /rest.
	URL *url.URL
	// Dialect is auto, bugzilla-5 or bmo; empty is auto, which sends
	// GET /rest/version once.
	Dialect string
	// Transport sends requests; Client does not close it.
	Transport http.RoundTripper
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
	url  *url.URL
	base string
	// basePath is the length of the path in base.
	basePath int
	rest     *resty.Client
	// transport is that of the options. A *transport.Stack has slots, for which calls wait before they begin.
	transport http.RoundTripper
	hideKeys  bool
	maxBody   int64
	// redirect is the address to which the tracker redirects all requests.
	redirect *redirectTarget
	split    jsonblob.SplitOptions
	dialect  *dialects
	keys     func(upstream.Caller) (upstream.Caller, error)
	logger   *slog.Logger
}

// New makes a client. It fails on a URL that no request could be built from.
func New(options Options) (*Client, error) {
	if options.URL == nil || options.URL.Host == "" || options.Transport == nil {
		return nil, errors.New("a tracker's client needs an absolute URL and a transport")
	}
	logger := options.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	client := &Client{
		url:       options.URL,
		base:      strings.TrimRight(options.URL.String(), "/"),
		basePath:  len(strings.TrimRight(options.URL.EscapedPath(), "/")),
		redirect:  &redirectTarget{},
		maxBody:   options.MaxBody,
		transport: options.Transport,
		hideKeys:  options.HideKeys,
		split:     options.Split,
		keys:      options.Keys,
		logger:    logger,
	}
	client.rest = newREST(redirects{options.Transport, client.redirect})
	var err error
	client.dialect, err = newDialects(options.Dialect)
	return client, err
}

var _ upstream.Tracker = (*Client)(nil)

// FlagTypes implements upstream.Tracker. The members and inclusions of a response come in random order; the reply has one form
// with one strong tag (tracker-behaviour.md section 2), and no cookies.
func (c *Client) FlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	call, err := PlanFlagTypes(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	if err != nil {
		return mapping.FlagTypes{}, c.withDialectUnknown(err)
	}
	if _, err := document.Load(c.split); err != nil {
		return mapping.FlagTypes{}, failure(&call, err)
	}
	document.Cookies = nil
	reply := mapping.FlagTypes{Document: document}
	if err := reply.Stabilize(); err != nil {
		unusable := bad("the tracker's response holds no flag types: " + err.Error())
		return mapping.FlagTypes{}, failure(&call, errors.Join(unusable, document.Close()))
	}
	return reply, nil
}

// CreateFlagType implements upstream.Tracker.
func (c *Client) CreateFlagType(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate) (mapping.FlagTypeCreated, error) {
	call, err := PlanCreateFlagType(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	if err != nil {
		return mapping.FlagTypeCreated{}, err
	}
	created := mapping.FlagTypeCreated{Document: document}
	return created, created.WithFlagID()
}

// UpdateFlagTypes implements upstream.Tracker.
func (c *Client) UpdateFlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeUpdate) (mapping.FlagTypesUpdated, error) {
	call, err := PlanUpdateFlagTypes(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	return mapping.FlagTypesUpdated{Document: document}, err
}

// BugAttachments implements upstream.Tracker.
func (c *Client) BugAttachments(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	call, err := PlanBugAttachments(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	return mapping.Attachments{Document: document}, err
}

// Attachment implements upstream.Tracker.
func (c *Client) Attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	call, err := PlanAttachment(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	return mapping.Attachments{Document: document}, err
}

// CreateAttachment implements upstream.Tracker.
func (c *Client) CreateAttachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentCreate) (mapping.AttachmentsCreated, error) {
	if err := c.resolvePathBug(ctx, caller, &request); err != nil {
		return mapping.AttachmentsCreated{}, err
	}
	call, err := PlanCreateAttachment(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	if err != nil {
		return mapping.AttachmentsCreated{}, err
	}
	created := mapping.AttachmentsCreated{Document: document}
	document.PathWon = request.Conflict
	return created, errors.Join(created.WithIDs(), created.WithIntegers())
}

// UpdateAttachments implements upstream.Tracker.
func (c *Client) UpdateAttachments(ctx context.Context, caller upstream.Caller, request mapping.AttachmentUpdate) (mapping.AttachmentsUpdated, error) {
	call, err := PlanUpdateAttachments(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	return mapping.AttachmentsUpdated{Document: document}, err
}
