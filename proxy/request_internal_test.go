package proxy

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestCallContextEnds(t *testing.T) {
	call := newCallContext(context.Background(), time.Hour)
	child, cancel := context.WithCancel(call.Context)
	defer cancel()
	call.close()
	<-child.Done()
	if !errors.Is(child.Err(), context.Canceled) {
		t.Errorf("ended with %v", child.Err())
	}
	if call.timer.Stop() {
		t.Error("the clock goes on")
	}
}

func TestCallContextKeepsItsFirstEnd(t *testing.T) {
	parent, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	call := newCallContext(parent, time.Nanosecond)
	<-call.Done()
	hangUp()
	call.close()
	if !errors.Is(call.Err(), context.DeadlineExceeded) {
		t.Errorf("ended with %v", call.Err())
	}
}

// TestCallContextTakesNoGoroutine: a thousand calls that wait would be a thousand goroutines more.
func TestCallContextTakesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	var ends []func()
	for range 100 {
		call := newCallContext(context.Background(), time.Hour)
		child, cancel := context.WithTimeout(context.WithValue(call.Context, &before, 1), time.Minute)
		defer cancel()
		ends = append(ends, func() {
			call.close()
			<-child.Done()
		})
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("100 calls take %d goroutines", more)
	}
	for _, end := range ends {
		end()
	}
}
