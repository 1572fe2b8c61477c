package proxy

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"portico/mapping"
)

// A thousand calls that wait would be a thousand goroutines more. All of them end with their requests.
func TestCallContextTakesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	var ends []func()
	for range 100 {
		rc := bare(t, mapping.OpAttachment, nil)
		rc.server.options.Timeout = time.Hour
		child, cancel := context.WithTimeout(context.WithValue(rc.beginCall(), &before, 1), time.Minute)
		defer cancel()
		ends = append(ends, func() {
			rc.close()
			<-child.Done()
			if !errors.Is(child.Err(), context.Canceled) || rc.callBegun() {
				t.Errorf("ended with %v, or the clock goes on", child.Err())
			}
		})
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("100 calls take %d goroutines", more)
	}
	for _, end := range ends {
		end()
	}
}
