package canary

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"portico/mapping"
	"portico/upstream"
)

// Outcome is what came of one comparison.
type Outcome string

// The outcomes. A comparison has one, the last of these that fits any of its
// differences.
const (
	OutcomeSame Outcome = "same"
	// OutcomeNoisy: it differs only where one tracker differs from itself, and plans
	// of writes only in their form.
	OutcomeNoisy Outcome = "noisy"
	// OutcomeTransient: the difference was gone when both were asked again.
	OutcomeTransient Outcome = "transient"
	// OutcomeAccepted: somebody has accepted all that differs.
	OutcomeAccepted  Outcome = "accepted"
	OutcomeConfirmed Outcome = "confirmed"
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSame, OutcomeNoisy, OutcomeTransient, OutcomeAccepted, OutcomeConfirmed}
}

// Canary compares the answers that clients get with those of another tracker. It is
// an upstream.Shadow, safe for concurrent use.
//
// One of the two is the candidate, whichever answered. The other one is the
// reference: differences are said of the candidate, so that a finding stays the
// same finding when the candidate begins to answer, and noise is where the
// reference contradicts itself.
type Canary struct {
	options  Options
	sampling atomic.Pointer[Sampling]
	seed     maphash.Seed
	samples  *rate.Limiter
	confirms *rate.Limiter
	memory   budget
	disk     budget

	// arrived are those that the workers get with the next release.
	arrived  []*job
	release  *time.Timer
	released bool // the release is set for what has arrived
	queue    chan *job
	due      chan *job
	waiting  *waiting
	pending  atomic.Int64
	replays  *lane

	noise    *noise
	ledger   *ledger
	redactor *Redactor
	marker   marker

	ctx     context.Context
	stop    context.CancelFunc
	life    sync.Mutex // guards closed, arrived and released, and that nothing is begun after it is set
	closed  bool
	running sync.WaitGroup
}

var _ upstream.Shadow = (*Canary)(nil)

// mostMemory bounds the bytes of answers that wait in memory, beside what a worker
// has before it.
const mostMemory = 64 << 20

// New makes a Canary and starts its workers. Whoever made it closes it.
func New(options Options) (*Canary, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("set up the comparison of trackers: %w", err)
	}
	o := options.withDefaults()
	c := &Canary{
		options: o, seed: maphash.MakeSeed(), redactor: NewRedactor(),
		samples:  rate.NewLimiter(rate.Limit(o.PerSecond), max(o.PerSecond, 1)),
		confirms: rate.NewLimiter(rate.Limit(float64(o.PerSecond)/2), max(o.PerSecond/2, 1)),
		queue:    make(chan *job, o.Queue), due: make(chan *job),
		waiting: newWaiting(o.Queue), replays: newLane(o.Queue), noise: newNoise(mostNoise),
	}
	c.ledger = newLedger(o, c.forget)
	c.memory.give(mostMemory)
	c.disk.give(4 * o.MaxBody)
	c.SetSampling(o.Sampling)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.release = time.AfterFunc(time.Hour, c.handOver)
	c.release.Stop()
	for range o.Workers {
		c.running.Go(c.work)
	}
	c.running.Go(c.pace)
	c.running.Go(c.keepBooks)
	if o.Isolated {
		c.running.Go(c.watchMarker)
		c.running.Go(c.replayInOrder)
	}
	return c, nil
}

// Close gives up what is under way, writes down what was found and ends within a
// second. Answered may still be called, and does nothing then.
func (c *Canary) Close() error {
	c.life.Lock()
	again := c.closed
	c.closed = true
	c.life.Unlock()
	c.release.Stop()
	c.stop()
	c.running.Wait()
	if again {
		return nil
	}
	c.discard()
	ctx, cancel := context.WithTimeout(context.Background(), longestGoodbye)
	defer cancel()
	return c.ledger.flush(ctx)
}

// spawn starts a goroutine that Close waits for. It gives false after Close.
func (c *Canary) spawn(run func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if !c.closed {
		c.running.Go(run)
	}
	return !c.closed
}

// Answered implements upstream.Shadow. For a call that is not sampled it costs some
// nanoseconds; for others it copies nothing that is in memory, asks nobody and
// waits for nobody.
func (c *Canary) Answered(
	ctx context.Context, caller upstream.Caller, call upstream.Call, sides upstream.Sides, answer upstream.Answer,
) *mapping.Document {
	if c.sampled(call.Operation, &caller) && !c.ledger.refusals.counted(call.Operation, sides, &answer) {
		c.take(ctx, caller, call, sides, answer)
	}
	return answer.Document
}

// take begins a comparison, or says why there is none.
func (c *Canary) take(ctx context.Context, caller upstream.Caller, call upstream.Call, sides upstream.Sides, answer upstream.Answer) {
	defer c.survive(call.Operation)
	about, ok := c.subjectOf(call.Operation, sides)
	if !ok {
		c.drop(about, DropUnknown)
		return
	}
	byCandidate := sides.Answered == c.options.Candidate
	reason := c.dismissal(ctx, call.Operation, sides, answer)
	if reason != "" {
		c.dismiss(about, reason)
		if c.replaysAll(call.Operation) && (reason == DropAnsweredFailed || reason == DropUnread) {
			c.missReplay() // it may have been carried out
		}
		return
	}
	if call.Operation.IsWrite() {
		c.takeWrite(caller, call, about, byCandidate, answer)
		return
	}
	j := c.newJob(about, caller, call, (*Canary).compare)
	j.answeredByCandidate = byCandidate
	if !answer.FromCache {
		j.took.answered = answer.Took
	}
	c.capture(j, answer)
}

// dismissal says why an answer is not even kept for a comparison, empty when it is.
func (c *Canary) dismissal(ctx context.Context, operation mapping.Operation, sides upstream.Sides, answer upstream.Answer) DropReason {
	byCandidate := sides.Answered == c.options.Candidate
	switch reason := refusal(ctx, answer); {
	case operation.IsWrite() && isInexpressible(answer.Err):
		return ""
	case reason == DropAnsweredFailed && byCandidate:
		return DropCandidateFailed
	case reason != "":
		return reason
	case operation.IsWrite() || !c.options.Refuses(sides.Other):
	case byCandidate:
		return DropOtherFailed
	default:
		return DropBreaker
	}
	if !c.replaysAll(operation) && !c.samples.Allow() {
		return DropRateLimit
	}
	return ""
}

// dismiss counts an answer that is not kept. While the candidate is refused, all that are read would be.
func (c *Canary) dismiss(about subject, reason DropReason) {
	if reason == DropBreaker {
		c.ledger.refusals.note(about)
		return
	}
	c.drop(about, reason)
}

// subjectOf tells who is the reference.
func (c *Canary) subjectOf(operation mapping.Operation, sides upstream.Sides) (subject, bool) {
	about := subject{reference: sides.Answered, candidate: sides.Other, operation: operation}
	if sides.Answered == c.options.Candidate {
		about.reference, about.candidate = sides.Other, sides.Answered
	}
	known := c.options.Trackers[about.reference] != nil && about.candidate == c.options.Candidate
	return about, known && about.reference != about.candidate
}

// survive keeps a mistake of the comparison away from the client.
func (c *Canary) survive(operation mapping.Operation) {
	if mistake := recover(); mistake != nil {
		c.mistake(operation, mistake)
		c.drop(subject{candidate: c.options.Candidate, operation: operation}, DropInternal)
	}
}

// mistake logs what nobody thought of. What it says may have content in it, so only
// its kind and place are told.
func (c *Canary) mistake(operation mapping.Operation, mistake any) {
	c.options.Logger.Error("comparing answers went wrong", "operation", operation,
		"kind", fmt.Sprintf("%T", mistake), "stack", string(debug.Stack()))
}
