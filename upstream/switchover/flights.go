package switchover

import (
	"context"
	"slices"
	"sync"
	"time"
)

// flights are the writes that are under way. They see to it that a write that
// moves to the other side does not begin before those of the same object that
// began under former rules have ended. They outlive a reload.
type flights struct {
	mu      sync.Mutex
	running map[object][]*flight
	// aliases counts those of bugs whose ids nobody looked up.
	aliases int
	// doubtful counts the objects of writes whose outcome nobody knows.
	doubtful int
}

// mostDoubtful bounds for how many objects writes are waited for that may still be carried
// out. One write may be of many objects, and whoever hangs up leaves them all behind.
const mostDoubtful = 100_000

// landed takes a write out of the flights. One that the tracker may still carry out, since
// nobody heard what became of it, stays for as long as that may take.
func (s *Switchover) landed(leave func(), objects int, err error) {
	f := &s.memory.flights
	if err == nil || refused(err) || s.options.Doubt < 0 || !f.doubt(objects) {
		leave()
		return
	}
	time.AfterFunc(s.options.Doubt, func() {
		f.doubt(-objects)
		leave()
	})
}

// doubt counts by so many, unless there are too many.
func (f *flights) doubt(by int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by > 0 && f.doubtful+by > mostDoubtful {
		return false
	}
	f.doubtful += by
	return true
}

// flight is one write.
type flight struct {
	table   *table
	tracker string
	ended   chan struct{}
}

// enter registers a write unless it has to wait. It gives what to do at its end,
// or what to wait for and the object that it is for. When the table is no longer
// the one that counts it gives neither: the write has to be decided again.
func (s *Switchover) enter(t *table, to side, objects []object) (leave func(), wait <-chan struct{}, of object) {
	f, tracker := &s.memory.flights, s.names[to]
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.table.Load() != t {
		return nil, nil, object{}
	}
	if t.killed == nil {
		for _, o := range objects {
			if other := f.inTheWay(t, tracker, o); other != nil {
				return nil, other.ended, o
			}
		}
	}
	mine := &flight{table: t, tracker: tracker, ended: make(chan struct{})}
	for _, o := range objects {
		f.running[o] = append(f.running[o], mine)
		f.aliases += o.aliases()
	}
	return func() { f.leave(mine, objects) }, nil, object{}
}

// inTheWay gives a write of an object that began under other rules at another
// tracker, or nil. An alias that nobody looked up may be that of any bug.
func (f *flights) inTheWay(t *table, tracker string, o object) *flight {
	formerly := func(other *flight) bool { return other.tracker != tracker && other.table != t }
	if i := slices.IndexFunc(f.running[o], formerly); i >= 0 {
		return f.running[o][i]
	}
	if o.kind != bugObject || o.alias == "" && f.aliases == 0 {
		return nil
	}
	for other, running := range f.running {
		if other.kind != bugObject || o.alias == "" && other.alias == "" {
			continue
		}
		if i := slices.IndexFunc(running, formerly); i >= 0 {
			return running[i]
		}
	}
	return nil
}

func (f *flights) leave(mine *flight, objects []object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		left := slices.DeleteFunc(f.running[o], func(other *flight) bool { return other == mine })
		if len(left) == 0 {
			delete(f.running, o)
		} else {
			f.running[o] = left
		}
		f.aliases -= o.aliases()
	}
	close(mine.ended)
}

// aliases is 1 for a bug that is named by an alias.
func (o object) aliases() int {
	if o.alias != "" {
		return 1
	}
	return 0
}

// decider decides a write by a table.
type decider func(context.Context, *table) ([]choice, error)

// begin decides a write and waits until it may begin. When other rules count
// meanwhile it decides again, for a kill must not wait for a tracker that hangs.
// Whoever calls calls leave at its end.
func (s *Switchover) begin(ctx context.Context, what decider) (t *table, made []choice, leave func(), err error) {
	for {
		t = s.table.Load()
		if made, err = t.decides(ctx, what); err != nil {
			if t.current.Err() != nil && ctx.Err() == nil {
				continue
			}
			return nil, nil, nil, err
		}
		leave, wait, of := s.enter(t, made[0].side, flying(made))
		if leave != nil {
			return t, made, leave, nil
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-t.current.Done():
		case <-ctx.Done():
			return nil, nil, nil, waiting(of, ctx.Err())
		}
	}
}

// decides asks for no longer than the table counts.
func (t *table) decides(ctx context.Context, what decider) ([]choice, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.current, cancel)()
	return what(ctx, t)
}

// flying names the objects of a write for flights, bugs by their ids where these
// are known. Flag types are one object, as each may be in any product. What no tracker
// can have is left out.
func flying(made []choice) []object {
	if made[0].object.kind == typesObject || made[0].object.kind == allTypes {
		return []object{{kind: allTypes}}
	}
	objects := make([]object, 0, len(made))
	for i := range made {
		o := made[i].object
		if id := made[i].bugID(); id != 0 && o.kind == bugObject {
			o = object{kind: bugObject, id: id}
		}
		if o.plausible() {
			objects = append(objects, o)
		}
	}
	return objects
}
