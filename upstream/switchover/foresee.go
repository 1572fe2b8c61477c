package switchover

import (
	"context"
	"sync"
)

// lookAtOnce is how many objects of one request are looked up at a time.
const lookAtOnce = 8

// seen is what a request with several objects has looked up, what is not there and failures too: these are believed for no longer
// than it lasts.
type seen struct {
	mu      sync.Mutex
	answers map[placeKey]sight
}

// seenKey finds it in the context of a request: as a part of its question it would put each question on the heap.
type seenKey struct{}

// sight is the end of one lookup.
type sight struct {
	found
	err error
}

func (s *seen) get(key placeKey) (sight, bool) {
	if s == nil {
		return sight{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.answers[key]
	return known, ok
}

func (s *seen) put(key placeKey, answer sight) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[key] = answer
}

// foresee looks up side by side what the decisions for several objects need to know. One after the other they would take as many
// times as long as the tracker takes. The decisions are made with the context that it gives.
func (s *Switchover) foresee(ctx context.Context, t *table, q *question, objects []object) context.Context {
	if t.killed != nil || len(objects) < 2 || q.looked != nil {
		return ctx
	}
	var open []object
	for _, o := range objects {
		if _, undecided := s.first(t, q, &o); undecided.any && !undecided.samePhase {
			open = append(open, o)
		}
	}
	if len(open) < 2 {
		return ctx
	}
	s.who(q)
	ctx = context.WithValue(ctx, seenKey{}, &seen{answers: map[placeKey]sight{}})
	slots := make(chan struct{}, lookAtOnce)
	var all sync.WaitGroup
	for _, o := range open {
		slots <- struct{}{}
		caller := *q.caller // a copy, or each request would have its caller on the heap
		own := question{
			caller: &caller, operation: q.operation, write: q.write, name: q.name, named: q.named, who: q.who, digested: q.digested,
		}
		all.Go(func() {
			defer func() {
				_ = recover() // it comes again where the request itself decides, and ends no more than that
				<-slots
			}()
			_, _ = s.decide(ctx, t, &own, o) // what it finds is in memory then, or in seen
		})
	}
	all.Wait()
	return ctx
}
