package canary

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// CaptureOptions say what of an answer is kept for a comparison.
type CaptureOptions struct {
	// Operation is that of the call; it tells the status of a success.
	Operation mapping.Operation
	// MaxBody is how many bytes are kept beside the content of attachments; of a
	// longer answer only the digest is [64 MiB].
	MaxBody int64
	// Split says where payloads lie meanwhile. Its limit of the body is not used.
	Split mapping.SplitOptions
	// Digest keeps the digest of the answer whatever its length.
	Digest bool
}

// mostDigested bounds how many times MaxBody is read for a digest. Whoever sends more
// never ends. Content costs time only, which is bounded.
const mostDigested = 4

// errEndless says that an answer was given up on.
var errEndless = errors.New("the answer is many times longer than what is compared")

// ReplyOf reads an answer to its end and closes it. Errors of the tracker are
// replies; so are answers that are none, with Reply.Failure. An error is returned
// when nothing can be said of the tracker: ctx ended, or there is no room.
func ReplyOf(ctx context.Context, answer upstream.Answer, o CaptureOptions) (Reply, error) {
	if answer.Err != nil || answer.Document == nil {
		return failedReply(answer.Err)
	}
	document := answer.Document
	defer document.Close() // its failure is that of the reading
	reply := Reply{Status: statusOf(o.Operation, document), Header: headersOf(o.Operation, document)}
	if document.NotModified {
		reply.Status = 304
		return reply, nil
	}
	if blobs := document.Blobs(); len(blobs) > 0 {
		return loadedReply(reply, document)
	}
	unlimited := &budget{} // a reader has one file at a time, of MaxBody at most
	unlimited.give(math.MaxInt64)
	s := o.spool(unlimited)
	defer s.release()
	s.end = mostDigested * s.most
	if _, err := document.WriteTo(s); err != nil {
		return o.broken(ctx, err)
	}
	return o.fill(reply, s)
}

func (o CaptureOptions) spool(disk *budget) *spool {
	s := &spool{disk: disk, dir: o.Split.Dir, most: o.MaxBody, shape: shapes[o.Operation]}
	if s.most <= 0 {
		s.most = 64 << 20
	}
	return s
}

// fill takes the body out of a spool.
func (o CaptureOptions) fill(reply Reply, s *spool) (Reply, error) {
	if err := s.read(); err != nil {
		return Reply{}, fmt.Errorf("keep an answer: %w", err)
	}
	if !o.Digest && s.digest == nil {
		text, payloads, err := o.split(s)
		if err == nil {
			reply.Body, reply.Payloads = text, payloads
			return reply, nil
		}
		if _, tooMuch := errors.AsType[*mapping.LimitError](err); !tooMuch {
			return unreadable(err)
		}
	}
	digest, err := s.payload()
	if err != nil {
		return Reply{}, fmt.Errorf("read an answer back: %w", err)
	}
	reply.Digest = &digest
	return reply, nil
}

// split sets the payloads aside and keeps their digests only.
func (o CaptureOptions) split(s *spool) (jsontext.Value, []Payload, error) {
	options := o.Split
	options.Tolerant, options.Limits.Body = true, -1 // there is no more than MaxBody
	text, blobs, err := mapping.Split(nil, s.reader(), options)
	if err != nil {
		return nil, nil, err
	}
	payloads, err := unstamped(blobs)
	return text, payloads, errors.Join(err, mapping.CloseBlobs(blobs))
}

// unstamped gives the payloads that blobs are, or that their stamps stand for.
func unstamped(blobs []*mapping.Blob) ([]Payload, error) {
	payloads := payloadsOf(blobs)
	for i, blob := range blobs {
		if !blob.Base64() || blob.Size() != int64(stampSize) {
			continue
		}
		raw, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, blob.Reader()))
		if err != nil {
			return nil, err
		}
		if payload, ok := payloadOfStamp(raw); ok {
			payloads[i] = payload
		}
	}
	return payloads, nil
}

// loadedReply is that of a document whose payloads were set aside already.
func loadedReply(reply Reply, document *mapping.Document) (Reply, error) {
	text, err := document.Load(mapping.SplitOptions{})
	reply.Body, reply.Payloads = text, payloadsOf(document.Blobs())
	return reply, err
}

func payloadsOf(blobs []*mapping.Blob) []Payload {
	list := make([]Payload, len(blobs))
	for i, blob := range blobs {
		list[i] = PayloadOf(blob)
	}
	return list
}

// statusOf gives what the tracker sent, or should have sent where that is not known.
func statusOf(operation mapping.Operation, document *mapping.Document) int {
	return cmp.Or(document.Status, operation.SuccessStatus())
}

// headersOf gives the headers that are compared. Of the type the parameters mean
// nothing, as JSON has one charset only; what comes from a cache had the type of all
// answers. Of a tag only that there is one means anything from one tracker to the
// other: clients ask with it later.
func headersOf(operation mapping.Operation, document *mapping.Document) map[string]string {
	headers := map[string]string{}
	kind, _, _ := strings.Cut(document.ContentType, ";")
	if document.Status == 0 {
		kind = "application/json"
	}
	if kind = strings.ToLower(strings.TrimSpace(kind)); kind != "" {
		headers["content-type"] = kind
	}
	isAttachment := operation == mapping.OpAttachment || operation == mapping.OpBugAttachments
	if isAttachment && document.ETag != "" {
		headers["etag"] = "sent"
	}
	return headers
}

// unreadable tells an answer that is no JSON from one that could not be kept.
func unreadable(err error) (Reply, error) {
	if _, bad := errors.AsType[*mapping.SyntaxError](err); bad {
		return Reply{Failure: string(mapping.ReasonBadAnswer)}, nil
	}
	return Reply{}, fmt.Errorf("read an answer: %w", err)
}

// broken judges an answer whose end was not seen.
func (o CaptureOptions) broken(ctx context.Context, err error) (Reply, error) {
	_, stream := errors.AsType[*mapping.StreamError](err)
	switch {
	case errors.Is(err, errEndless):
		return Reply{Failure: "endless"}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Reply{Failure: string(mapping.ReasonTimeout)}, nil
	case stream && ctx.Err() == nil:
		return Reply{Failure: string(mapping.ReasonBadAnswer)}, nil
	default:
		return Reply{}, fmt.Errorf("keep an answer: %w", err)
	}
}

// failedReply is that of an answer without a document. What Portico says itself
// becomes a Failure.
func failedReply(err error) (Reply, error) {
	said, ok := errors.AsType[*mapping.Error](err)
	switch {
	case !ok && err == nil:
		return Reply{}, errors.New("an answer without a document")
	case !ok:
		return Reply{}, err
	case said.FromTracker():
		return errorReply(said), nil
	case said.Reason == mapping.ReasonCanceled:
		return Reply{}, err
	default:
		return Reply{Failure: string(said.Reason)}, nil
	}
}
