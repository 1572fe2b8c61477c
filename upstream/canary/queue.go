package canary

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// responseTimes is how long both trackers needed to begin their responses to one call. Only
// where both are known can the histograms be compared.
type responseTimes struct{ reference, candidate time.Duration }

func (t responseTimes) known() bool { return t.reference > 0 && t.candidate > 0 }

func (t *responseTimes) of(candidate bool) *time.Duration {
	if candidate {
		return &t.candidate
	}
	return &t.reference
}

// job is one comparison on its way. One goroutine at a time has it.
type job struct {
	caller    upstream.Caller
	operation mapping.Operation // of the call that the client made
	call      upstream.Call
	// run makes the comparison. It returns why there is no result, if so.
	run   func(*job) verdict.DropReason
	began time.Time // when the client's response began

	client                compare.Reply // the client's response
	size                  int64         // its length
	byCandidate           bool          // the client's response is the candidate's
	isUnpaired            bool          // it is a 404, as the candidate has no pair of an id: it was not asked
	held                  atomic.Int64  // of Canary.memory
	observed, pairedCalls responseTimes // pairedCalls are of calls that the comparison made itself
	maxReply              int64         // bytes of the candidate's response that are read, 0 without a bound

	// first is the reference's response and second the candidate's, unexplained
	// what differs between them and is not known to be noise.
	first, second compare.Reply
	unexplained   []compare.Difference
	// failed says that the candidate had failed to respond when it was first asked.
	failed bool
	// noisy says that something else differed that is known to be noise, or only the form of a write's plans, and transient that a
	// write explains what differed.
	noisy, transient bool
	// found is what was found: first between the plans of a write, then between responses.
	found []*state.Sighting

	// turn is closed when the write before this one has ended, and done when this one has; they are nil for what is not repeated
	// on an isolated candidate. isMissing says that the candidate lacks the write.
	turn, done chan struct{}
	isMissing  bool
}

// either gives one reason where the client's response is the candidate's, and another one where it is the reference's.
func (j *job) either(candidates, references verdict.DropReason) verdict.DropReason {
	if j.byCandidate {
		return candidates
	}
	return references
}

// begin starts a goroutine that Close waits for. It returns false after Close.
func (c *Canary) begin(run func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	isOpen := c.ctx.Err() == nil
	if isOpen {
		c.running.Go(run)
	}
	return isOpen
}

// firstDelay is how long a comparison waits at first: one that begins at once
// would take the processor from the response that is just going out.
const firstDelay = 50 * time.Millisecond

// enqueue starts a captured job, or drops it.
func (c *Canary) enqueue(j *job) {
	reason := verdict.DropQueueFull
	if c.queued.Add(1) <= int64(c.options.Queue) {
		if c.begin(func() { c.process(j) }) {
			return
		}
		reason = verdict.DropClosed
	}
	c.queued.Add(-1)
	c.end(j, reason)
}

// process makes a comparison: writes that are repeated one after the other, and others as soon as a slot is free.
func (c *Canary) process(j *job) {
	defer c.recoverPanic(j)
	var reason verdict.DropReason
	if j.turn == nil {
		reason = c.sleep(firstDelay)
		defer c.freeSlot()
	} else {
		select {
		case <-c.ctx.Done():
			reason = verdict.DropClosed
		case <-j.turn:
		}
	}
	c.queued.Add(-1)
	if reason == "" {
		reason = j.run(j)
	}
	c.end(j, reason)
}

// sleep waits and then takes a slot.
func (c *Canary) sleep(pause time.Duration) verdict.DropReason {
	if !upstream.Pause(c.ctx, pause) {
		return verdict.DropClosed
	}
	select {
	case <-c.ctx.Done():
		return verdict.DropClosed
	case c.slots <- struct{}{}:
		return ""
	}
}

// freeSlot gives a slot back. After Close there may be none.
func (c *Canary) freeSlot() {
	select {
	case <-c.slots:
	default:
	}
}

// pause lets a job wait for being confirmed, without its slot.
func (c *Canary) pause(pause time.Duration) verdict.DropReason {
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > int64(c.options.Queue) {
		return verdict.DropQueueFull
	}
	c.freeSlot()
	return c.sleep(pause)
}

// recoverPanic keeps a panic in one comparison from ending the process.
func (c *Canary) recoverPanic(j *job) {
	if reason := recover(); reason != nil {
		// Its text may have content in it, so only its type and place are logged.
		c.options.Logger.Error("a comparison panicked", "operation", j.operation, "type", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
		c.end(j, verdict.DropInternal)
	}
}

// end frees what a job holds. With a reason, the job is dropped.
func (c *Canary) end(j *job, reason verdict.DropReason) {
	if reason != "" {
		c.recorder.drop(j.operation, reason)
	}
	c.releaseClient(j)
	if j.isMissing && c.repeated.Missed() {
		c.options.Logger.Warn("a write was not repeated on the isolated candidate, which may hold something else from now on")
	}
	if j.done != nil { // one that is dropped must not let those after it pass those before it
		go func() {
			<-j.turn
			close(j.done)
		}()
	}
	c.pending.Add(-1)
}

// releaseClient drops the client's response.
func (c *Canary) releaseClient(j *job) {
	c.memory.Add(-j.held.Swap(0))
	j.client = compare.Reply{}
}

// maxMemory bounds the bytes of responses that wait in memory, beside what a worker
// has before it.
const maxMemory = 64 << 20

// hold takes memory for a job until it ends; a negative number gives some of it back.
func (c *Canary) hold(j *job, n int) bool {
	if c.memory.Add(int64(n)) > maxMemory {
		c.memory.Add(-int64(n))
		return false
	}
	j.held.Add(int64(n))
	return true
}

// Load is how much is under way.
type Load struct {
	// Queued responses wait for a worker, Waiting ones for being asked again. Pending
	// are all, those included that clients are still reading.
	Queued, Waiting, Pending int
}

// Load returns how much is under way, for metrics.
func (c *Canary) Load() Load {
	return Load{int(c.queued.Load()), int(c.waiting.Load()), int(c.pending.Load())}
}
