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
	"portico/upstream"
)

// Options configure a Client. URL and Transport are required.
type Options struct {
	// URL is the tracker's base, the part before /rest.
	URL *url.URL
	// Dialect is auto, bugzilla-5 or bmo; empty is auto, which asks
	// GET /rest/version once.
	Dialect string
	// Transport sends requests; Client does not close it.
	Transport http.RoundTripper
	// Split bounds what a reply may cost in memory when it is looked into.
	Split mapping.SplitOptions
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
	// turn waits until the transport has room for a call.
	turn    func(ctx context.Context, method string) (_ context.Context, done func())
	split   mapping.SplitOptions
	dialect *dialects
	logger  *slog.Logger
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
		url:      options.URL,
		base:     strings.TrimRight(options.URL.String(), "/"),
		basePath: len(strings.TrimRight(options.URL.EscapedPath(), "/")),
		rest:     newREST(options.Transport),
		turn:     turnOf(options.Transport),
		split:    options.Split,
		logger:   logger,
	}
	pinned, err := newDialects(options.Dialect, client.version)
	if err != nil {
		return nil, err
	}
	client.dialect = pinned
	return client, nil
}

var _ upstream.Tracker = (*Client)(nil)

// FlagTypes implements upstream.Tracker.
func (c *Client) FlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	call, err := PlanFlagTypes(c.Dialect(ctx), request)
	document, err := c.document(ctx, caller, call, err)
	if err != nil {
		return mapping.FlagTypes{}, c.undecided(err)
	}
	if err := c.stabilize(document); err != nil {
		return mapping.FlagTypes{}, err
	}
	return mapping.FlagTypes{Document: document}, nil
}

// CreateFlagType implements upstream.Tracker.
func (c *Client) CreateFlagType(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate) (mapping.FlagTypeCreated, error) {
	call, err := PlanCreateFlagType(c.Dialect(ctx), request)
	document, err := c.loaded(ctx, caller, call, err)
	if err != nil {
		return mapping.FlagTypeCreated{}, err
	}
	created := mapping.FlagTypeCreated{Document: document}
	return created, created.WithFlagID()
}

// UpdateFlagTypes implements upstream.Tracker.
func (c *Client) UpdateFlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeUpdate) (mapping.FlagTypesUpdated, error) {
	call, err := PlanUpdateFlagTypes(c.Dialect(ctx), request)
	document, err := c.loaded(ctx, caller, call, err)
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
	if err := c.settle(ctx, caller, &request); err != nil {
		return mapping.AttachmentsCreated{}, err
	}
	call, err := PlanCreateAttachment(c.Dialect(ctx), request)
	document, err := c.loaded(ctx, caller, call, err)
	if err != nil {
		return mapping.AttachmentsCreated{}, err
	}
	created := mapping.AttachmentsCreated{Document: document}
	document.PathWon = request.Conflict
	return created, errors.Join(created.FromAttachmentMap(), created.WithIntegers())
}

// UpdateAttachments implements upstream.Tracker.
func (c *Client) UpdateAttachments(ctx context.Context, caller upstream.Caller, request mapping.AttachmentUpdate) (mapping.AttachmentsUpdated, error) {
	call, err := PlanUpdateAttachments(c.Dialect(ctx), request)
	document, err := c.loaded(ctx, caller, call, err)
	return mapping.AttachmentsUpdated{Document: document}, err
}

// document sends a planned call and gives the answer, perhaps still arriving.
func (c *Client) document(ctx context.Context, caller upstream.Caller, call Call, planned error) (*mapping.Document, error) {
	if planned != nil {
		return nil, planned
	}
	response, err := c.send(ctx, caller, &call)
	if err != nil {
		return nil, failure(&call, err)
	}
	document, err := c.answer(&call, response)
	if err != nil {
		return nil, failure(&call, err)
	}
	return document, nil
}

// loaded is document for answers that are small and looked into.
func (c *Client) loaded(ctx context.Context, caller upstream.Caller, call Call, planned error) (*mapping.Document, error) {
	document, err := c.document(ctx, caller, call, planned)
	if err != nil {
		return nil, err
	}
	if _, err := document.Load(c.split); err != nil {
		return nil, failure(&call, err)
	}
	return document, nil
}

// stabilize brings a flag type answer, whose members and inclusions come in
// random order, to one form with one strong tag (wire-facts.md section 2).
func (c *Client) stabilize(document *mapping.Document) error {
	call := Call{Operation: mapping.OpFlagTypes}
	if _, err := document.Load(c.split); err != nil {
		return failure(&call, err)
	}
	if err := (mapping.FlagTypes{Document: document}).Stabilize(); err != nil {
		unusable := bad("the tracker's answer holds no flag types: " + err.Error())
		return failure(&call, errors.Join(unusable, document.Close()))
	}
	document.Cookies = nil
	return nil
}
