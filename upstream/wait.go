package upstream

import (
	"cmp"
	"context"
	"net"
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

// WithServer is the hook ConnContext of an http.Server. What goes on after its client has hung up ends with ctx, which comes from the server's
// BaseContext.
func WithServer(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, serverKey{}, ctx)
}

// Outlive returns a context that has the values and the deadline of ctx, but goes on when that is canceled, as by a client that hangs up. It ends with
// the server that ctx belongs to.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	outliving, end := context.WithCancel(context.WithoutCancel(ctx))
	if deadline, limited := ctx.Deadline(); limited {
		outliving, end = context.WithDeadline(outliving, deadline)
	}
	server, _ := ctx.Value(serverKey{}).(context.Context)
	stop := context.AfterFunc(cmp.Or(server, context.Background()), end)
	return outliving, func() { stop(); end() }
}
