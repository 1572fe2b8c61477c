package proxy

import (
	"context"
	"crypto/sha256"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Headers of creates that may be sent again without harm. The first is that of the IETF draft
// draft-ietf-httpapi-idempotency-key-header, as are the statuses for keys that are in use; the second says that a response was
// given before.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
)

const (
	// maxRecordedBody bounds a response that is kept, in bytes. A real create responds with a few ids.
	maxRecordedBody = 16 << 10
	// maxIdempotencyRecords bounds how many creates are remembered in a process: 64 MiB at most, and less than one in fact.
	maxIdempotencyRecords = 4096
)

// Idempotency remembers the creates that came with an Idempotency-Key, so that one that is sent again is not carried out again.
// It may serve several Servers, one after another, as when the configuration is read again.
type Idempotency struct {
	prints upstream.Fingerprints
	store  IdempotencyStore
}

// NewIdempotency makes an Idempotency that keeps its records in a store; nil keeps them in this process, where they do not survive it.
// The secret is what fingerprints are made under, the same for all who share the store; nil is one for this process alone.
func NewIdempotency(store IdempotencyStore, secret []byte) *Idempotency {
	if store == nil {
		store = &memoryStore{records: map[[sha256.Size]byte]*upstream.IdempotencyRecord{}}
	}
	return &Idempotency{prints: upstream.NewFingerprints(secret), store: store}
}

// IdempotencyStore keeps records for upstream.IdempotencyTime. Keys and contents are fingerprints: nothing leads back from them. It is safe
// for concurrent use.
type IdempotencyStore interface {
	// Begin claims a key. Where another request has it, it is not claimed, and the record of that one is returned.
	Begin(ctx context.Context, key, content [sha256.Size]byte) (known upstream.IdempotencyRecord, claimed bool, err error)
	// End says what became of a claim; nil frees the key.
	End(ctx context.Context, key [sha256.Size]byte, outcome *upstream.IdempotencyRecord)
}

// memoryStore is the IdempotencyStore of one process.
type memoryStore struct {
	mu      sync.Mutex
	records map[[sha256.Size]byte]*upstream.IdempotencyRecord
}

// Begin implements IdempotencyStore. Where the store is full, the oldest record is removed, but never that of a create that is running.
func (m *memoryStore) Begin(_ context.Context, key, content [sha256.Size]byte) (upstream.IdempotencyRecord, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var oldest [sha256.Size]byte
	since := now
	for other, record := range m.records {
		switch {
		case record.Running:
		case now.Sub(record.Since) >= upstream.IdempotencyTime:
			delete(m.records, other)
		case record.Since.Before(since):
			oldest, since = other, record.Since
		}
	}
	if known := m.records[key]; known != nil {
		return *known, false, nil
	}
	if len(m.records) >= maxIdempotencyRecords {
		delete(m.records, oldest)
	}
	if len(m.records) >= maxIdempotencyRecords {
		return upstream.IdempotencyRecord{}, false, mapping.TryLater(mapping.ReasonOverload, nil,
			"Too many requests with an Idempotency-Key are being carried out.")
	}
	m.records[key] = &upstream.IdempotencyRecord{Content: content, Running: true, Since: now}
	return upstream.IdempotencyRecord{}, true, nil
}

// End implements IdempotencyStore.
func (m *memoryStore) End(_ context.Context, key [sha256.Size]byte, outcome *upstream.IdempotencyRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if outcome == nil {
		delete(m.records, key)
	} else if known := m.records[key]; known != nil {
		known.Running, known.Body, known.Failed = false, outcome.Body, outcome.Failed
	}
}

var validKey = regexp.MustCompile(`^[!-~]{1,255}$`)

// idempotencyKey returns the key of a create, empty without one. Reads and updates ignore it: they may be repeated as they are.
func idempotencyKey(header http.Header) (string, error) {
	given := header[headerIdempotencyKey]
	if len(given) == 0 {
		return "", nil
	}
	if len(given) > 1 || !validKey.MatchString(given[0]) {
		return "", mapping.Refuse(mapping.CodeBadParameter, "An %s is given once and has 1 to 255 printable characters.", headerIdempotencyKey)
	}
	return given[0], nil
}

// canonicalText says what a create asks for, whatever the order of its members and of theirs: some clients write an object in another
// order each time. Credentials are no part of it.
func (rc *requestContext) canonicalText() (string, error) {
	text := jsontext.Value(rc.written.AppendJSON(nil))
	// It fails on a member that is there twice, which cannot be; then the order it came in has to do.
	_ = text.Format(jsontext.ReorderRawObjects(true))
	for _, blob := range rc.blobs {
		digest, err := blob.Digest()
		if err != nil {
			return "", err
		}
		text = append(text, digest[:]...)
	}
	return string(text), nil
}

// once makes the call of a create, or returns what became of it before if it came with a key.
func (rc *requestContext) once(call upstream.Call) (*mapping.Document, error) {
	name, err := idempotencyKey(rc.r.Header)
	if err != nil {
		return nil, err
	}
	ctx := rc.beginCall()
	if name == "" {
		return rc.make(ctx, call)
	}
	records := rc.server.options.Idempotency
	caller := records.prints.Credential(rc.caller)
	key := records.prints.Of("create", string(caller[:]), string(rc.record.Operation), rc.path, name)
	text, err := rc.canonicalText()
	if err != nil {
		return nil, err
	}
	digest := records.prints.Of("content", text)
	before, claimed, err := records.store.Begin(ctx, key, digest)
	switch {
	case err != nil:
		return nil, err
	case claimed:
		return rc.first(ctx, key, digest, call)
	case before.Content != digest:
		return nil, mapping.NewError(mapping.CodeKeyMismatch, reasonKeyMismatch, "This Idempotency-Key was used for another request already.")
	case before.Running:
		running := mapping.NewError(mapping.CodeKeyRunning, reasonKeyRunning, "The first request with this Idempotency-Key is still being carried out.")
		running.RetryAfter = time.Second
		return nil, running
	}
	rc.Header().Set(headerReplayed, "true")
	if before.Failed != nil {
		return nil, before.Failed
	}
	return mapping.NewDocument(before.Body), nil
}

// first makes the call of a create and remembers what became of it, also if the client hangs up meanwhile.
func (rc *requestContext) first(ctx context.Context, key, content [sha256.Size]byte, call upstream.Call) (*mapping.Document, error) {
	detached, end := upstream.Outlive(ctx)
	defer end()
	// Whatever is not found out below, a panic too, leaves the outcome unknown.
	outcome := &upstream.IdempotencyRecord{Content: content, Failed: UnknownCreate(nil)}
	defer func() { rc.server.options.Idempotency.store.End(context.WithoutCancel(ctx), key, outcome) }()
	document, err := rc.make(detached, call)
	if err != nil {
		if outcome.Failed = afterFailure(err); outcome.Failed == nil {
			outcome = nil
		}
		return nil, err
	}
	text, err := document.Load(jsonblob.SplitOptions{})
	if err != nil {
		return nil, UnknownCreate(err)
	}
	if len(text) <= maxRecordedBody && len(document.Blobs()) == 0 {
		outcome.Failed, outcome.Body = nil, slices.Clone(text)
	}
	return document, nil
}

// UnknownCreate is the error of a create whose outcome is not known, for an IdempotencyStore that finds one whose process has
// ended.
func UnknownCreate(cause error) *mapping.Error {
	failed := mapping.NewError(mapping.CodeTimeout, mapping.ReasonBadResponse,
		"It is not known whether this was created. Look for it before sending it again with another Idempotency-Key.")
	failed.Err, failed.Unknown = cause, true
	return failed
}

// afterFailure returns what is remembered of a create that failed: the error, if the tracker may have carried it out all the
// same, and nothing, if it surely has not: then the client may correct the request and use the key again.
func afterFailure(err error) *mapping.Error {
	failed := *asError(err, true)
	failed.Err, failed.RetryAfter = nil, 0
	// A web server or gateway before the tracker may have replaced the tracker's response to a create that was carried out. Every
	// error of a tracker has a code. A rate limit is decided beforehand.
	page := failed.Reason == mapping.ReasonWebServer || failed.FromTracker() && failed.Code == 0
	switch {
	case failed.Reason == mapping.ReasonCanceled, failed.Reason == mapping.ReasonInternal, page && failed.Status != http.StatusTooManyRequests:
		return UnknownCreate(nil)
	case failed.Unknown, failed.FromTracker() && failed.Status >= http.StatusInternalServerError:
		return &failed
	}
	return nil
}
