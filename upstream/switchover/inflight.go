package switchover

import (
	"context"
	"slices"
	"sync"
	"time"

	"portico/upstream"
)

// inFlight are the writes under way. A write that moves to the other side does not begin before
// those of the same object that began under earlier rules have ended.
type inFlight struct {
	mu     sync.Mutex
	writes map[*inFlightWrite]struct{}
	// objects counts the objects of all writes.
	objects int
}

// maxInFlight is the number of objects in flight from which on a write with an unknown outcome is not waited for. One write may
// have many objects, and clients that hang up leave them all behind.
const maxInFlight = 10_000

// inFlightWrite is one write.
type inFlightWrite struct {
	rules   *ruleSet
	to      side
	objects []object
	ended   chan struct{}
}

// blocks reports whether a write has to end before another one of an object may begin at the other side. An alias whose id is not
// known may be that of any bug.
func (w *inFlightWrite) blocks(o object) bool {
	return slices.ContainsFunc(w.objects, func(own object) bool {
		return own == o || own.kind == bugObject && o.kind == bugObject && (own.alias != "" || o.alias != "")
	})
}

// enter registers a write, or gives the one that it has to wait for and the object that both have. It
// gives neither when other rules are in force by now: the write has to be decided again.
func (s *Switchover) enter(rules *ruleSet, routes []route) (own, earlier *inFlightWrite, o object) {
	own = &inFlightWrite{rules: rules, to: routes[0].side, objects: lockedObjects(routes), ended: make(chan struct{})}
	f := &s.inFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.rules.Load() != rules {
		return nil, nil, object{}
	}
	for other := range f.writes {
		if other.to == own.to || other.rules == rules || rules.killed != nil {
			continue
		}
		for _, o := range own.objects {
			if other.blocks(o) {
				return nil, other, o
			}
		}
	}
	f.writes[own] = struct{}{}
	f.objects += len(own.objects)
	return own, nil, object{}
}

// leave ends a write. One that the tracker may still carry out, as its outcome is unknown, stays for as long as that may take.
func (s *Switchover) leave(own *inFlightWrite, err error) {
	f := &s.inFlight
	end := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.writes, own)
		f.objects -= len(own.objects)
		close(own.ended)
	}
	f.mu.Lock()
	full := f.objects > maxInFlight
	f.mu.Unlock()
	if err == nil || upstream.NotWritten(err) || full {
		end()
		return
	}
	time.AfterFunc(own.rules.UnknownOutcome, end)
}

// begin decides a write and waits until it may begin. When other rules come into force meanwhile it decides
// again, for a kill must not wait for a tracker that hangs. The caller calls leave at the end.
func (s *Switchover) begin(ctx context.Context, decide func(context.Context, *ruleSet) ([]route, error)) ([]route, *inFlightWrite, error) {
	for {
		rules := s.rules.Load()
		deciding, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(rules.current, cancel)
		routes, err := decide(deciding, rules)
		stop()
		cancel()
		switch {
		case err != nil && rules.current.Err() != nil && ctx.Err() == nil:
			continue
		case err != nil:
			return nil, nil, err
		}
		own, earlier, o := s.enter(rules, routes)
		switch {
		case own != nil:
			return routes, own, nil
		case earlier == nil:
			continue
		}
		select {
		case <-earlier.ended:
		case <-rules.current.Done():
		case <-ctx.Done():
			return nil, nil, waiting(o, ctx.Err())
		}
	}
}

// lockedObjects are the objects of a write that others wait for, bugs by their ids where these
// are known. Flag types are one object, as each may be in any product. What no tracker
// can have is left out.
func lockedObjects(routes []route) []object {
	if routes[0].object.kind >= typesObject {
		return []object{{kind: allTypes}}
	}
	objects := make([]object, 0, len(routes))
	for i := range routes {
		o := routes[i].object
		if id := routes[i].bugID(); id != 0 && o.kind == bugObject {
			o = object{kind: bugObject, id: id}
		}
		if o.plausible() {
			objects = append(objects, o)
		}
	}
	return objects
}
