package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// perform carries out one of the seven operations.
func (rc *requestContext) perform(op mapping.Operation) {
	rc.record.Operation = op
	setCommonHeaders(rc.Header())
	defer rc.close()
	rc.reply(rc.respond(op))
}

// reply responds with the document or the error of a call.
func (rc *requestContext) reply(document *mapping.Document, err error) {
	if rc.call != nil {
		rc.call.begun()
	}
	if err == nil {
		rc.markProven()
		err = errors.Join(rc.succeed(document), document.Close())
	}
	switch {
	case err == nil:
	case rc.status == 0:
		rc.fail(err)
	default:
		// The response has begun: the only way left to tell the client is to break the connection.
		rc.record.Reason, rc.cause = cutReason(err), err
		panic(http.ErrAbortHandler)
	}
}

func (rc *requestContext) respond(op mapping.Operation) (*mapping.Document, error) {
	if rc.server.lacks(rc.r.Context(), op) {
		return nil, mapping.NoFlagTypeWrites()
	}
	if err := rc.identify(); err != nil {
		return nil, err
	}
	if !op.IsWrite() {
		if err := rc.admit(); err != nil {
			return nil, err
		}
	}
	return rc.carryOut(op)
}

// carryOut decodes the request of an operation and makes the call.
func (rc *requestContext) carryOut(op mapping.Operation) (*mapping.Document, error) {
	var segment string
	var members mapping.Members
	var err error
	if len(rc.segments) > 0 {
		segment, err = rc.segment(0)
	}
	if err == nil && op.IsWrite() {
		members, err = rc.members()
	}
	if err != nil {
		return nil, err
	}
	return rc.complete(decoders[op](rc, segment, members))
}

// complete makes a call that has been decoded, with its number of ids.
func (rc *requestContext) complete(call upstream.Call, ids int, err error) (*mapping.Document, error) {
	if err != nil {
		return nil, err
	}
	if limit := rc.server.options.Limits.IDs; ids > limit {
		return nil, failure(mapping.CodeTooLarge, mapping.ReasonTooLarge, fmt.Sprintf("One request may name at most %d ids.", limit), nil)
	}
	call.Operation = rc.record.Operation
	if call.Operation.IsCreate() {
		return rc.once(call)
	}
	return rc.make(rc.beginCall(), call)
}

// make makes a call of the tracker. Both results may be there.
func (rc *requestContext) make(ctx context.Context, call upstream.Call) (*mapping.Document, error) {
	reply, err := rc.server.options.Tracker.Do(ctx, rc.caller, call)
	rc.record.Cache = reply.Cache // beside an error, too
	rc.record.Conflict = rc.record.Conflict || reply.Document != nil && reply.PathWon
	return reply.Document, err
}

// beginCall starts the call to the tracker.
func (rc *requestContext) beginCall() context.Context {
	options := &rc.server.options
	limit := options.ReadTimeout
	if rc.record.Operation.IsWrite() {
		limit, rc.sent = options.WriteTimeout, true
	}
	rc.call = newCallContext(rc.r.Context(), limit)
	if options.Revalidate != nil && rc.record.Operation == mapping.OpFlagTypes && wantsFresh(rc.r.Header) {
		return options.Revalidate(rc.call.Context)
	}
	return rc.call.Context
}

// close frees what the request holds.
func (rc *requestContext) close() {
	if rc.call != nil {
		rc.call.close()
	}
	// Their files have no names, so nothing is left behind.
	_ = jsonblob.CloseBlobs(append(rc.blobs, rc.content))
	rc.share.end()
}

// callContext is the context of one call to the tracker. Its deadline holds until the response begins: what follows is bounded by
// the pauses of either side instead, so that a large attachment to a slow client is not cut by the clock.
type callContext struct {
	context.Context
	timer   *time.Timer
	detach  func() bool
	release context.CancelFunc
}

// newCallContext starts the clock. The caller calls close when nothing of the call is in use any more.
func newCallContext(request context.Context, limit time.Duration) *callContext {
	clock := &callClock{Context: request, deadline: time.Now().Add(limit), never: make(chan struct{})}
	ctx, release := context.WithCancel(clock)
	return &callContext{ctx, time.AfterFunc(limit, clock.cancel), context.AfterFunc(request, clock.cancel), release}
}

// begun lifts the deadline: the response has begun.
func (c *callContext) begun() { c.timer.Stop() }

func (c *callContext) close() {
	c.timer.Stop()
	c.detach()
	c.release()
}

// callClock is what the context of a call is derived from. Package context takes the error of that from it. A context of package
// context in between saves a goroutine for each further one.
type callClock struct {
	context.Context // of the request
	deadline        time.Time
	never           chan struct{}
	cancel          func()
}

// Deadline implements context.Context.
func (c *callClock) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context. The context of the call uses AfterFunc instead.
func (c *callClock) Done() <-chan struct{} { return c.never }

// Err implements context.Context. It is called when the request or the time has ended.
func (c *callClock) Err() error { return cmp.Or(c.Context.Err(), context.DeadlineExceeded) }

// AfterFunc is called once by package context.
func (c *callClock) AfterFunc(f func()) (stop func() bool) {
	c.cancel = f
	return func() bool { return false }
}
