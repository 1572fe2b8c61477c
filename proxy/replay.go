package proxy

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// Headers of creates that may be sent again without harm. The first is that of the IETF draft
// draft-ietf-httpapi-idempotency-key-header, as are the statuses for keys that are in use; the second says that an answer was
// given before.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
)

// Reasons that only this package has.
const (
	reasonKeyRunning  mapping.Reason = "idempotency-running"
	reasonKeyMismatch mapping.Reason = "idempotency-mismatch"
)

// longestReplay bounds an answer that is kept. A real create answers with a few ids.
const longestReplay = 16 << 10

// keyedCreate is a create whose client sent a key with it.
type keyedCreate struct {
	key, path string
	answer    http.Header
}

type keyedCreateKey struct{}

// noteIdempotencyKey finds the key of a create. Everything else ignores the header: reads and updates may be repeated as they are.
func (x *exchange) noteIdempotencyKey() error {
	if x.operation != mapping.OpCreateFlagType && x.operation != mapping.OpCreateAttachment {
		return nil
	}
	given := x.r.Header.Values(headerIdempotencyKey)
	if len(given) == 0 {
		return nil
	}
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if key := given[0]; len(given) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, unfit) {
		return mapping.Refuse(mapping.CodeBadParameter, "An %s is given once and has 1 to 255 printable characters.", headerIdempotencyKey)
	}
	noted := &keyedCreate{key: given[0], path: x.r.URL.Path, answer: x.w.Header()}
	x.r = x.r.WithContext(context.WithValue(x.r.Context(), keyedCreateKey{}, noted))
	return nil
}

// creating carries out creates, those with a key once only.
type creating struct {
	next    upstream.Tracker
	replays *Replays
}

func (c creating) flagType(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate) (mapping.FlagTypeCreated, error) {
	keyed, _ := ctx.Value(keyedCreateKey{}).(*keyedCreate)
	if keyed == nil {
		return c.next.CreateFlagType(ctx, caller, request)
	}
	said := request
	said.Inclusions, said.Exclusions = sorted(request.Inclusions), sorted(request.Exclusions)
	members, err := said.Members(mapping.Dialect{}) // no tracker's form, only one that tells requests apart
	if err != nil {
		return mapping.FlagTypeCreated{}, err
	}
	document, err := c.once(ctx, caller, keyed, contentOf(members, nil), func(ctx context.Context) (*mapping.Document, error) {
		got, err := c.next.CreateFlagType(ctx, caller, request)
		return got.Document, err
	})
	return mapping.FlagTypeCreated{Document: document}, err
}

func (c creating) attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentCreate) (mapping.AttachmentsCreated, error) {
	keyed, _ := ctx.Value(keyedCreateKey{}).(*keyedCreate)
	if keyed == nil {
		return c.next.CreateAttachment(ctx, caller, request)
	}
	content := contentOf(request.Members(), request.Data)
	document, err := c.once(ctx, caller, keyed, content, func(ctx context.Context) (*mapping.Document, error) {
		got, err := c.next.CreateAttachment(ctx, caller, request)
		return got.Document, err
	})
	return mapping.AttachmentsCreated{Document: document}, err
}

func sorted(scopes *mapping.Scopes) *mapping.Scopes {
	if scopes == nil {
		return nil
	}
	inOrder := scopes.Sorted()
	return &inOrder
}

// contentOf tells what a create says, whatever the order of its members and of theirs: some clients write an object in another
// order each time. Credentials are no part of it.
func contentOf(members mapping.Members, data *mapping.Blob) string {
	text := jsontext.Value(members.AppendJSON(nil))
	// It fails on a member that is there twice, which cannot be; then the order it came in has to do.
	_ = text.Format(jsontext.ReorderRawObjects(true))
	digest := data.Digest()
	return string(text) + string(digest[:])
}

// once carries a create out, or tells what became of it before.
func (c creating) once(ctx context.Context, caller upstream.Caller, keyed *keyedCreate, content string,
	create func(context.Context) (*mapping.Document, error),
) (*mapping.Document, error) {
	who := c.replays.prints.credential(caller)
	operation := string(recordOf(ctx).Operation)
	key := c.replays.prints.of("create", string(who[:]), operation, keyed.path, keyed.key)
	digest := c.replays.prints.of("content", content)
	before, claimed, err := c.replays.store.Begin(ctx, key, digest)
	switch {
	case err != nil:
		return nil, err
	case claimed:
		return c.first(ctx, key, digest, create)
	case before.Content != digest:
		return nil, failure(mapping.CodeKeyMismatch, reasonKeyMismatch, "This Idempotency-Key was used for another request already.", nil)
	case before.Running:
		failed := failure(mapping.CodeKeyRunning, reasonKeyRunning, "The first request with this Idempotency-Key is still being carried out.", nil)
		failed.RetryAfter = time.Second
		return nil, failed
	}
	keyed.answer.Set(headerReplayed, "true")
	if before.Failed != nil {
		failed := *before.Failed
		return nil, &failed
	}
	return mapping.NewDocument(before.Body), nil
}

type lastingKey struct{}

// Lasting makes the context that the requests of an http.Server begin with, as its BaseContext. What goes on after its client
// has hung up ends with ctx.
func Lasting(ctx context.Context) context.Context { return context.WithValue(ctx, lastingKey{}, ctx) }

// outliving gives a context that a client's hanging up does not end.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := func() bool { return true }
	if server, ok := ctx.Value(lastingKey{}).(context.Context); ok {
		stop = context.AfterFunc(server, cancel)
	}
	end := func() { stop(); cancel() }
	deadline, ok := ctx.Deadline()
	if !ok {
		return lasting, end
	}
	lasting, late := context.WithDeadline(lasting, deadline)
	return lasting, func() { late(); end() }
}

// first carries a create out and remembers what became of it. The client may hang up meanwhile: the answer waits for it.
func (c creating) first(ctx context.Context, key, content [sha256.Size]byte, create func(context.Context) (*mapping.Document, error)) (*mapping.Document, error) {
	lasting, end := outliving(ctx)
	defer end()
	// Whatever is not found out below, a panic too, leaves the outcome unknown.
	outcome := &Replay{Content: content, Failed: unknownOutcome(nil)}
	defer func() { c.replays.store.End(context.WithoutCancel(ctx), key, outcome) }()
	document, err := create(lasting)
	if err != nil {
		outcome = afterFailure(content, err)
		return nil, err
	}
	text, err := document.Load(mapping.SplitOptions{})
	if err != nil {
		return nil, unknownOutcome(err)
	}
	if len(text) <= longestReplay && len(document.Blobs()) == 0 {
		outcome = &Replay{Content: content, Body: slices.Clone(text)}
	}
	return document, nil
}

// UnknownCreate is the error of a create of which nobody knows what became, for a ReplayStore that finds one whose process is
// no more.
func UnknownCreate() *mapping.Error { return unknownOutcome(nil) }

func unknownOutcome(cause error) *mapping.Error {
	failed := failure(mapping.CodeTimeout, mapping.ReasonBadAnswer,
		"It is not known whether this was created. Look for it before sending it again with another Idempotency-Key.", cause)
	failed.Unknown = true
	return failed
}

// afterFailure tells what is remembered of a create that failed: the answer, if the tracker may have carried it out all the
// same, and nothing, if it surely has not: then the client may mend what was wrong and use the key again.
func afterFailure(content [sha256.Size]byte, err error) *Replay {
	failed := *asError(err, true)
	failed.Err, failed.RetryAfter = nil, 0
	switch {
	case failed.Reason == mapping.ReasonCanceled, failed.Reason == mapping.ReasonInternal:
		return &Replay{Content: content, Failed: unknownOutcome(nil)}
	case failed.Unknown, failed.FromTracker() && failed.Status >= http.StatusInternalServerError:
		return &Replay{Content: content, Failed: &failed}
	}
	return nil
}
