package proxy

import (
	"cmp"
	"context"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// carryOut decodes the request of an operation and makes the call. A write is admitted with its body, which may hold the credential.
func (rc *requestContext) carryOut(op mapping.Operation) (*mapping.Document, error) {
	if rc.server.lacks(rc.r.Context(), op) {
		return nil, mapping.NoFlagTypeWrites()
	}
	var segment string
	var members mapping.Members
	err := rc.identify()
	if err == nil && !op.IsWrite() {
		err = rc.admit()
	}
	if err == nil && len(rc.segments) > 0 {
		segment, err = rc.segment(0)
	}
	if err == nil && op.IsWrite() {
		members, err = rc.members()
	}
	if err != nil {
		return nil, err
	}
	return rc.complete(rc.decode(op, segment, members))
}

// complete makes a call that has been decoded, with its number of ids.
func (rc *requestContext) complete(call upstream.Call, ids int, err error) (*mapping.Document, error) {
	if err != nil {
		return nil, err
	}
	if limit := rc.server.options.Limits.IDs; ids > limit {
		return nil, mapping.NewError(mapping.CodeTooLarge, mapping.ReasonTooLarge, "One request may name at most %d ids.", limit)
	}
	call.Operation, call.Fresh = rc.record.Operation, wantsFresh(rc.r.Header)
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

// beginCall returns the context of the call to the tracker. Its deadline holds until the response begins: what follows is bounded by
// the pauses of either side instead, so that a large attachment to a slow client is not cut by the clock.
func (rc *requestContext) beginCall() context.Context {
	options := &rc.server.options
	rc.sent = rc.record.Operation.IsWrite()
	request := rc.r.Context()
	clock := &callClock{Context: request, deadline: time.Now().Add(options.Timeout), never: make(chan struct{})}
	ctx, release := context.WithCancel(clock)
	timer, detach := time.AfterFunc(options.Timeout, clock.cancel), context.AfterFunc(request, clock.cancel)
	rc.liftDeadline, rc.endCall = timer.Stop, func() {
		timer.Stop()
		detach()
		release()
	}
	return ctx
}

// close frees what the request holds.
func (rc *requestContext) close() {
	if rc.endCall != nil {
		rc.endCall()
	}
	// Their files have no names, so nothing is left behind.
	_ = jsonblob.CloseBlobs(append(rc.blobs, rc.content))
	rc.bodyShare.end()
	rc.replyShare.end()
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
