package cache

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// guarded is f for those who share what it gives. Whoever runs f for them raises a panic
// of it again where nobody can catch it, so it becomes an error for each of them.
func (c *Cache) guarded(f func() any) func() (any, error) {
	return func() (value any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = c.common.panicked(cause)
			}
		}()
		return f(), nil
	}
}

// panicked makes an error of a panic, and logs where it happened. What happened is told
// only if the runtime says so: any other value might hold a credential.
func (k *Common) panicked(cause any) error {
	what := fmt.Sprintf("%T", cause)
	if known, ok := cause.(runtime.Error); ok {
		what = known.Error()
	}
	if told := k.newest.Load(); told != nil {
		told.Logger.Error("the cache panicked", slog.String("panic", what), slog.String("stack", string(debug.Stack())))
	}
	return fmt.Errorf("the cache panicked: %s", what)
}
