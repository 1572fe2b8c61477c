package proxy

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCallContextEnds(t *testing.T) {
	call := newCallContext(context.Background(), time.Hour)
	child, cancel := context.WithCancel(call)
	defer cancel()
	call.end()
	<-child.Done()
	if !errors.Is(call.Err(), context.Canceled) || !errors.Is(child.Err(), context.Canceled) {
		t.Errorf("ended with %v and %v", call.Err(), child.Err())
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
	call.end()
	if !errors.Is(call.Err(), context.DeadlineExceeded) {
		t.Errorf("ended with %v", call.Err())
	}
}
