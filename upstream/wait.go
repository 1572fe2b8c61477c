package upstream

import (
	"cmp"
	"context"
	"time"
)

// Pause waits, and returns false when ctx ends before.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

type serverKey struct{}

// WithServer returns a context that says that what it is the context of belongs to a server which ends with it.
func WithServer(ctx context.Context) context.Context { return context.WithValue(ctx, serverKey{}, ctx) }

// Outlive returns a context that has the values and the deadline of ctx, but goes on when that is canceled, as by a client that hangs up. It ends with
// life, and with the server that ctx belongs to.
func Outlive(ctx, life context.Context) (context.Context, context.CancelFunc) {
	outliving, end := context.WithCancel(context.WithoutCancel(ctx))
	if deadline, limited := ctx.Deadline(); limited {
		outliving, end = context.WithDeadline(outliving, deadline)
	}
	server, _ := ctx.Value(serverKey{}).(context.Context)
	stop, stopToo := context.AfterFunc(life, end), context.AfterFunc(cmp.Or(server, life), end)
	return outliving, func() { stop(); stopToo(); end() }
}
