package canary

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// capture keeps what the client gets. The job is enqueued when the client has all of it.
func (c *Canary) capture(j *job, answer upstream.Response) {
	document := answer.Document
	if answer.Err == nil && len(document.Blobs()) == 0 {
		j.client = replyHead(j.operation, document)
		t := &tap{canary: c, job: j, pieces: make(chan []byte, maxPieces)}
		if !c.begin(t.run) {
			c.end(j, verdict.DropClosed)
			return
		}
		document.Tee(t, t.done)
		return
	}
	var err error
	if document != nil {
		j.size = document.Len()
	}
	if j.client, err = c.replyOf(c.ctx, j.operation, answer); err != nil || !c.hold(j, len(j.client.Body)) {
		c.end(j, verdict.DropMemory)
		return
	}
	if j.isUnpaired {
		failed := failureOf(answer.Err)
		j.client = compare.ErrorReply(&failed)
	}
	c.enqueue(j)
}

// maxPieces bounds how many pieces of a stream wait for being read.
const maxPieces = 1024

// errNoMore ends the copying of a response, for which there is no memory. The client never sees it.
var errNoMore = errors.New("the response is not kept any more")

// tap copies a response while the client reads it. Write and done run on the client's goroutine; what takes long is left to
// run.
type tap struct {
	canary *Canary
	job    *job
	pieces chan []byte
	failed verdict.DropReason // is set before pieces is closed
	piece  bytes.Reader       // what run has not read yet of one
}

// Write implements io.Writer for Document.Tee. An error ends the copying only.
func (t *tap) Write(p []byte) (int, error) {
	t.failed = verdict.DropMemory
	switch {
	case t.canary.ctx.Err() != nil:
		t.failed = verdict.DropClosed
	case t.canary.hold(t.job, len(p)):
		select {
		case t.pieces <- bytes.Clone(p):
			t.failed = ""
			return len(p), nil
		default:
		}
	}
	return 0, errNoMore
}

// done is called when the client's document is closed.
func (t *tap) done(whole bool) {
	if !whole {
		t.failed = cmp.Or(t.failed, verdict.DropUnread)
	}
	close(t.pieces)
}

// run reads the pieces until the client has read all of them.
func (t *tap) run() {
	c, j := t.canary, t.job
	defer c.recoverPanic(j)
	document := mapping.NewStream(nil, io.NopCloser(t), -1)
	defer document.Close()
	client, err := c.read(j.client, document, func(more int) error {
		if !c.hold(j, more) {
			return errNoMore
		}
		return nil
	})
	_, _ = io.Copy(io.Discard, t) // the client reads on
	switch {
	case c.ctx.Err() != nil: // the client may not have read all of it
		c.end(j, verdict.DropClosed)
	case t.failed != "":
		c.end(j, t.failed)
	case errors.Is(err, errNoMore):
		c.end(j, verdict.DropMemory)
	case err != nil:
		c.end(j, verdict.DropInternal)
	case client.Failure != "":
		c.end(j, verdict.DropUnreadable)
	default:
		j.client = client
		c.enqueue(j)
	}
}

// Read implements io.Reader for run. It fails after Close.
func (t *tap) Read(p []byte) (int, error) {
	for t.piece.Len() == 0 {
		select {
		case <-t.canary.ctx.Done():
			return 0, t.canary.ctx.Err()
		case piece, more := <-t.pieces:
			if !more {
				return 0, io.EOF
			}
			t.piece.Reset(piece)
			t.job.size += int64(len(piece))
			t.canary.hold(t.job, -len(piece))
		}
	}
	return t.piece.Read(p)
}

// maxRead is up to how many times Options.MaxBody a response is read. Content of attachments does not count.
const maxRead = 4

// read reads a document to its end and adds it to a reply. The caller closes the document. What is not JSON, or is too long, becomes a Failure of the reply.
// hold is asked for memory; if it is nil there is no limit.
func (c *Canary) read(reply compare.Reply, document *mapping.Document, hold func(int) error) (compare.Reply, error) {
	options := c.options.Split
	options.Limits = jsonblob.AnswerLimits(options.Limits.BlobMemory)
	options.Limits.Skeleton, options.Limits.Depth, options.Limits.String = int(maxRead*c.options.MaxBody), -1, -1
	options.Tolerant, options.Hold = true, hold
	text, err := document.Load(options)
	payloads := document.Blobs()
	if err == nil && len(payloads) == 0 { // one that is in memory has not been split
		text, payloads, err = jsonblob.Split(nil, bytes.NewReader(text), options)
		defer func() { _ = jsonblob.CloseBlobs(payloads) }() // they were not used but for their digests
	}
	if err == nil {
		reply.Body, err = compare.Body(text, payloads)
		reply.Long = int64(len(text)) > c.options.MaxBody
	}
	if isBadResponse(err) {
		return compare.Reply{Failure: string(mapping.ReasonBadResponse)}, nil
	}
	if _, tooMuch := errors.AsType[*jsonblob.LimitError](err); tooMuch {
		return compare.Reply{Failure: "endless"}, nil
	}
	return reply, err
}

// isBadResponse reports whether a response is not JSON or broke off, and not for lack of space here.
func isBadResponse(err error) bool {
	_, isInvalid := errors.AsType[*jsonblob.SyntaxError](err)
	_, isCut := errors.AsType[*mapping.StreamError](err)
	_, isStore := errors.AsType[*jsonblob.BlobError](err)
	_, isLimit := errors.AsType[*jsonblob.LimitError](err)
	return (isInvalid || isCut) && !isStore && !isLimit
}

// failureOf gives an error of a Tracker in the form of those that clients see, and the zero value for nil.
func failureOf(err error) mapping.Error {
	failed, ok := errors.AsType[*mapping.Error](err)
	switch {
	case ok:
		return *failed
	case errors.Is(err, context.Canceled):
		return mapping.Error{Reason: mapping.ReasonCanceled}
	case isBadResponse(err): // which translating it found
		return mapping.Error{Reason: mapping.ReasonBadResponse}
	case err != nil:
		return mapping.Error{Reason: mapping.ReasonInternal}
	}
	return mapping.Error{}
}

// replyOf reads a response to its end. The caller closes it. Errors of the tracker are
// replies; so are invalid responses, with Reply.Failure. An error is returned
// when nothing is known of the tracker: ctx ended, or there is no memory. Portico's own errors become a Failure.
func (c *Canary) replyOf(ctx context.Context, operation mapping.Operation, answer upstream.Response) (compare.Reply, error) {
	failed := failureOf(answer.Err)
	switch {
	case failed.Reason == mapping.ReasonCanceled || failed.Reason == mapping.ReasonInternal:
		return compare.Reply{}, answer.Err
	case failed.Reason != "":
		return compare.Reply{Failure: string(failed.Reason)}, nil
	case answer.Err != nil:
		return compare.ErrorReply(&failed), nil
	}
	reply, err := c.read(replyHead(operation, answer.Document), answer.Document, nil)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && (err != nil || reply.Failure != "") {
		return compare.Reply{Failure: string(mapping.ReasonTimeout)}, nil
	}
	return reply, err
}

// replyHead gives the status, or that of a success where it is not known, and the headers that are compared. Of the type
// the parameters mean nothing, as JSON has one charset only; what comes from a cache had the type of all responses. Of an
// ETag only its presence means anything from one tracker to the other: clients ask with it later.
func replyHead(operation mapping.Operation, document *mapping.Document) compare.Reply {
	reply := compare.Reply{Status: cmp.Or(document.Status, operation.SuccessStatus()), Header: map[string]string{}}
	kind, _, _ := strings.Cut(document.ContentType, ";")
	if document.Status == 0 {
		kind = "application/json"
	}
	reply.Header["content-type"] = strings.ToLower(strings.TrimSpace(kind))
	if (operation == mapping.OpAttachment || operation == mapping.OpBugAttachments) && document.ETag != "" {
		reply.Header["etag"] = "sent"
	}
	return reply
}
