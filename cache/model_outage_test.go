package cache

import (
	"context"
	"sync"
	"time"

	"portico/mapping"
)

// calm ends all trouble and waits until Redis knows everything.
func (w *world) calm() {
	w.t.Helper()
	for _, p := range w.processes {
		p.proxy.Delay.Store(0)
		p.proxy.Down(false)
		eventually(w.t, p.name+" delivers its changes", func() bool { return !p.cache.generation.undelivered() })
	}
}

// outage has the tracker go away while clients of both processes keep on writing.
// What is in the cache then has to be given by both for as long as that lasts.
func (w *world) outage() {
	w.t.Helper()
	if w.failed() != nil {
		return
	}
	for _, p := range w.processes {
		eventually(w.t, p.name+" has an answer", func() bool {
			return w.outageRead(p).cache.Hit || w.failed() != nil
		})
	}
	unmarked := w.unmarked.Load()
	w.tracker.away.Store(true)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 5 {
				_ = failing(w.processes[(i+w.rand(2))%2].cache, "member")
			}
		})
	}
	writers.Wait()
	if w.unmarked.Load() != unmarked {
		w.t.Log("the machine is too busy to tell whether failed writes keep the cache")
		return
	}
	for _, p := range w.processes {
		var a answer
		eventually(w.t, p.name+" has its Redis", func() bool { // which a busy machine may take away for a moment
			a = w.outageRead(p)
			return a.cache.Detail != detailAway
		})
		if a.err != nil {
			w.fail("%s: after writes that did nothing a read fails: %v, %+v", p.name, a.err, a.cache)
			return
		}
		w.check(p, withKey("member"), outageRequest, a, w.tracker.version.Load(), 0)
	}
}

var outageRequest = mapping.FlagTypesRequest{Product: "Private"}

func (w *world) outageRead(p *process) answer {
	return askFor(context.Background(), p.cache, withKey("member"), outageRequest)
}

func (w *world) observe(operation string, _ time.Duration, err error) {
	if operation == "pending" && err != nil {
		w.unmarked.Add(1)
	}
}
