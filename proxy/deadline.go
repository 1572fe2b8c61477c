package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// callContext is the context of one call to the tracker. Its deadline holds until the answer begins: what follows is
// bounded by the pauses of either side instead, so that a large attachment to a slow client is not cut by the clock.
type callContext struct {
	context.Context
	deadline time.Time
	timer    *time.Timer
	detach   func() bool
	// over is closed when the call ends, for whatever reason.
	over chan struct{}
	// plain is the same for who makes contexts of it: one of package context's own, which saves it a goroutine for each
	// call that waits.
	plain   context.Context //nolint:containedctx // it is a part of a context
	release context.CancelFunc

	mu    sync.Mutex
	err   error
	after []*func()
}

// newCallContext starts the clock. end must be called when nothing of the call is in use any more.
func newCallContext(parent context.Context, limit time.Duration) *callContext {
	c := &callContext{Context: parent, deadline: time.Now().Add(limit), over: make(chan struct{})}
	c.plain, c.release = context.WithCancel(c)
	c.detach = context.AfterFunc(parent, func() { c.finish(parent.Err()) })
	c.timer = time.AfterFunc(limit, func() { c.finish(context.DeadlineExceeded) })
	return c
}

// begun lifts the deadline: the answer has begun.
func (c *callContext) begun() { c.timer.Stop() }

// end cancels what may still be going on.
func (c *callContext) end() {
	c.timer.Stop()
	c.detach()
	c.release() // before the end, which then finds nobody to tell
	c.finish(context.Canceled)
}

func (c *callContext) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.over)
	for _, f := range c.after {
		go (*f)()
	}
	c.after = nil
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.over }

// Err implements context.Context.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is what package context looks for before it starts a goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	mine := &f
	c.after = append(c.after, mine)
	return func() bool { return c.forget(mine) }
}

// forget gives false when what was to come after the end is called already.
func (c *callContext) forget(f *func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.after, f)
	if at >= 0 {
		c.after = slices.Delete(c.after, at, at+1)
	}
	return at >= 0
}
