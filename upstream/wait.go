package upstream

import (
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

// Outlive returns a context that has the values and the deadline of ctx, but goes on when that is canceled, as by a client that hangs up. It ends with
// life.
func Outlive(ctx, life context.Context) (context.Context, context.CancelFunc) {
	outliving, end := context.WithCancel(context.WithoutCancel(ctx))
	if deadline, limited := ctx.Deadline(); limited {
		outliving, end = context.WithDeadline(outliving, deadline)
	}
	stop := context.AfterFunc(life, end)
	return outliving, func() { stop(); end() }
}
