package canary

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
)

const (
	// noteOfGap is said of findings when the candidate lacks a write.
	noteOfGap = "The candidate did not get every write, so that it may hold something else."
	// noteOfOverlap is said of them when nobody knows in which order the writes were carried out.
	noteOfOverlap = "Some writes were made at the same time, so that the candidate may have got them in another order."
)

// lane holds the writes that are made once more, in the order in which they were
// answered. One after the other they leave the candidate in the state in which they
// left the other tracker; several at a time would not.
type lane struct {
	most int
	wake chan struct{}
	// gap says that a write was not made once more since the campaign began.
	gap atomic.Bool
	// overlap says that a write had begun when another one was answered.
	overlap atomic.Bool
	// lag is how much later the candidate got a write than the reference at most, in nanoseconds.
	lag atomic.Int64

	mu   sync.Mutex
	jobs []*job
	last time.Time // when the last write was answered
}

// turn is a place in a lane. ready says that the client has its answer.
type turn struct{ ready bool }

func newLane(most int) *lane { return &lane{most: most, wake: make(chan struct{}, 1)} }

// join gives a job its place at the end, also when there is none: then it has to
// leave at once. took is how long the answer took.
func (l *lane) join(j *job, took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.began.Add(-took).Before(l.last) {
		l.overlap.Store(true)
	}
	l.last = j.began
	j.turn = &turn{}
	fits := len(l.jobs) < l.most
	if fits {
		l.jobs = append(l.jobs, j)
	}
	return fits
}

// ready says that a job may be made when it is the first. It wakes nobody.
func (l *lane) ready(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.turn.ready = true
}

// leave takes a job out, whatever became of it.
func (l *lane) leave(j *job) {
	l.mu.Lock()
	if at := slices.Index(l.jobs, j); at >= 0 {
		l.jobs = slices.Delete(l.jobs, at, at+1)
	}
	l.mu.Unlock()
	l.nudge()
}

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// next gives the first job if it is ready. It stays the first until it leaves.
func (l *lane) next() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) == 0 || !l.jobs[0].turn.ready {
		return nil
	}
	return l.jobs[0]
}

// any gives a job that is ready, the first or not, nil when there is none.
func (l *lane) any() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if j.turn.ready {
			return j
		}
	}
	return nil
}

func (l *lane) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// replayInOrder makes one write after the other.
func (c *Canary) replayInOrder() {
	for c.ctx.Err() == nil {
		if j := c.replays.next(); j != nil {
			c.advance(j)
			continue
		}
		select {
		case <-c.replays.wake:
		case <-c.ctx.Done():
		}
	}
}

// replaysAll is true for calls of which an isolated candidate gets each one, however
// few are sampled: with gaps it would soon differ by itself.
func (c *Canary) replaysAll(operation mapping.Operation) bool {
	return c.options.Isolated && operation.IsWrite()
}

// missReplay notes that the candidate lacks a write from now on.
func (c *Canary) missReplay() {
	if !c.replays.gap.Swap(true) {
		c.options.Logger.Warn("a write was not repeated on the isolated candidate, which may hold something else from now on")
	}
}
