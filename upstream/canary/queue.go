package canary

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"portico/upstream"
)

// job is one comparison on its way.
type job struct {
	subject
	caller upstream.Caller
	call   upstream.Call
	// step is what a worker does next. It gives false when the job is over.
	step  func(*Canary, context.Context, *job) bool
	at    time.Time // when it is due again
	began time.Time // when the client was answered

	// said is what the client got, as bytes until a worker reads it; clientReply is
	// set instead where there are none.
	said                *spool
	clientReply         *Reply
	clientHeader        map[string]string
	clientStatus        int // 0 when the answer came from a cache
	answeredByCandidate bool
	held                int64 // of Canary.memory
	took, paired        took  // paired are of calls that the comparison made itself
	// most is how long the candidate's answer may be, 0 when that is not known.
	most int64

	// first is what the reference said and second what the candidate said, suspects
	// what differs between them and is not known to be noise.
	first, second Reply
	suspects      []Difference
	// failed says that the candidate had failed to answer when it was first asked.
	failed bool
	// noisy says that something else differed that is known to be noise.
	noisy bool

	readback *readback // of reads after a write
	// planned is what differs between the plans of a write, and differentForm says that
	// they are written differently. They count when the job ends, as all of a write does.
	planned       []*found
	differentForm bool

	// turn is the place of a write that is made once more, replayed says that the
	// candidate has got it, and payload is its content in base64.
	turn     *turn
	replayed bool
	payload  []byte
}

func (c *Canary) newJob(about subject, caller upstream.Caller, call upstream.Call, step func(*Canary, context.Context, *job) bool) *job {
	c.pending.Add(1)
	if call.Attachments != nil { // a condition would get an answer without content
		request := *call.Attachments
		request.IfNoneMatch = ""
		call.Attachments = &request
	}
	return &job{subject: about, caller: caller, call: call, step: step, began: time.Now()}
}

// hold takes memory for a job until it ends.
func (c *Canary) hold(j *job, n int64) bool {
	ok := c.memory.take(n)
	if ok {
		j.held += n
	}
	return ok
}

// abandon ends a job without a result.
func (c *Canary) abandon(j *job, reason DropReason) {
	c.drop(j.subject, reason)
	c.end(j)
}

// end gives back what a job holds.
func (c *Canary) end(j *job) {
	if j.said != nil {
		j.said.release()
	}
	c.memory.give(j.held)
	j.said, j.held = nil, 0
	if j.turn != nil {
		c.replays.leave(j)
		if !j.replayed {
			c.missReplay()
		}
	}
	c.pending.Add(-1)
}

// courtesy is how long a comparison lets the client's own request be: whoever is
// woken at once would take the processor from the answer that is just going out.
const courtesy = 50 * time.Millisecond

// enqueue keeps a job for the workers, or drops it. It wakes nobody.
func (c *Canary) enqueue(j *job) {
	reason := DropReason("")
	c.life.Lock()
	switch {
	case c.closed:
		reason = DropClosed
	case j.turn != nil:
		c.replays.ready(j)
		c.releaseSoon()
	case len(c.arrived)+len(c.queue) >= cap(c.queue):
		reason = DropQueueFull
	default:
		c.arrived = append(c.arrived, j)
		c.releaseSoon()
	}
	c.life.Unlock()
	if reason != "" {
		c.abandon(j, reason)
	}
}

// releaseSoon sets the release for what has arrived; the lock is held.
func (c *Canary) releaseSoon() {
	if !c.released {
		c.released = true
		c.release.Reset(courtesy)
	}
}

// handOver gives the workers what has arrived. There is room for it: only enqueue
// decides how many there are.
func (c *Canary) handOver() {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed {
		return
	}
	c.released = false
	c.replays.nudge()
	for _, j := range c.arrived {
		c.queue <- j
	}
	clear(c.arrived)
	c.arrived = c.arrived[:0]
}

// work is one worker.
func (c *Canary) work() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case j := <-c.due:
			c.advance(j)
		case j := <-c.queue:
			c.advance(j)
		}
	}
}

// advance takes one step of a job.
func (c *Canary) advance(j *job) {
	more := false
	defer func() {
		if mistake := recover(); mistake != nil {
			c.mistake(j.operation, mistake)
			c.drop(j.subject, DropInternal)
		}
		if !more {
			c.end(j)
		}
	}()
	more = j.step(c, c.ctx, j)
}

// later puts a job aside for a while. It gives false when too many wait already.
func (c *Canary) later(j *job, after time.Duration, step func(*Canary, context.Context, *job) bool) bool {
	j.at, j.step = time.Now().Add(after), step
	return c.waiting.push(j)
}

// pace brings the jobs that were put aside back when they are due.
func (c *Canary) pace() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		j, wait := c.waiting.pop(time.Now())
		if j != nil {
			select {
			case c.due <- j:
			case <-c.ctx.Done():
				c.abandon(j, DropClosed)
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.waiting.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

// discard drops what nobody will work on any more. It is called when all workers
// have ended and nothing new can come.
func (c *Canary) discard() {
	for _, j := range c.arrived {
		c.abandon(j, DropClosed)
	}
	c.arrived = nil
	for {
		select {
		case j := <-c.queue:
			c.abandon(j, DropClosed)
			continue
		default:
		}
		j := c.waiting.any()
		if j == nil {
			j = c.replays.any()
		}
		if j == nil {
			return
		}
		c.abandon(j, DropClosed)
	}
}

// waiting holds jobs by the time when they are due, a bounded number of them.
type waiting struct {
	mu   sync.Mutex
	jobs byTime
	most int
	wake chan struct{}
}

func newWaiting(most int) *waiting { return &waiting{most: most, wake: make(chan struct{}, 1)} }

func (w *waiting) push(j *job) bool {
	w.mu.Lock()
	fits := len(w.jobs) < w.most
	if fits {
		heap.Push(&w.jobs, j)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return fits
}

// pop gives a job that is due, or how long there is none.
func (w *waiting) pop(now time.Time) (*job, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.jobs) == 0:
		return nil, time.Hour
	case w.jobs[0].at.After(now):
		return nil, w.jobs[0].at.Sub(now)
	}
	return heap.Pop(&w.jobs).(*job), 0
}

// any gives a job whether it is due or not, nil when there is none.
func (w *waiting) any() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) == 0 {
		return nil
	}
	return heap.Pop(&w.jobs).(*job)
}

func (w *waiting) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

// byTime is a heap, the earliest job first.
type byTime []*job

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, k int) bool { return q[i].at.Before(q[k].at) }
func (q byTime) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }

// Push implements heap.Interface.
func (q *byTime) Push(j any) { *q = append(*q, j.(*job)) }

// Pop implements heap.Interface.
func (q *byTime) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return j
}
