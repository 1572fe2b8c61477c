package canary

import (
	"context"
	cryptorand "crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/canary/writes"
)

// Canary compares the responses that clients get with those of another tracker. It is
// an upstream.Shadow, safe for concurrent use.
//
// One of the two is the candidate, whichever responded to the client. The other one is the
// reference: differences are those of the candidate, so that a finding stays the
// same finding when the candidate begins to serve clients, and noise is where the
// reference contradicts itself.
type Canary struct {
	options  Options
	rules    compare.Rules
	sampling atomic.Pointer[Sampling]
	salt     string // of sticky sampling
	samples  *rate.Limiter
	confirms *rate.Limiter
	memory   atomic.Int64 // bytes of responses that wait
	pending  atomic.Int64 // jobs that have not ended

	// queued and waiting are the jobs that wait for their first turn, and for being confirmed. slots has one entry for each job
	// that runs.
	queued, waiting atomic.Int64
	slots           chan struct{}

	life    sync.Mutex // held to start something, which ends with ctx
	running sync.WaitGroup

	noise    *noise
	recorder *recorder
	redactor *compare.Redactor
	seen     *writes.Seen
	repeated writes.Replays
	isolated atomic.Bool // the last proof that the candidate is isolated succeeded

	ctx  context.Context
	stop context.CancelFunc
}

// New makes a Canary. The caller closes it.
func New(options Options) *Canary {
	c := &Canary{
		options: options, salt: cryptorand.Text(), redactor: compare.NewRedactor(),
		samples:  rate.NewLimiter(rate.Limit(options.PerSecond), options.PerSecond),
		confirms: rate.NewLimiter(rate.Limit(float64(options.PerSecond)/2), max(options.PerSecond/2, 1)),
		slots:    make(chan struct{}, options.Workers),
		noise:    newNoise(), seen: writes.NewSeen(),
	}
	c.options.Latency.Least = minPairs
	c.rules, _ = compare.NewRules(options.Equivalences, time.Now()) // the configuration has reported problems
	c.recorder = &recorder{options: &c.options, forget: c.forget, batch: newBatch(), speeds: map[mapping.Operation]*speeds{}}
	c.SetSampling(options.Sampling)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.running.Go(c.keepRecords)
	if options.Isolated {
		c.running.Go(c.watchIsolation)
	}
	return c
}

// every does something again and again until Close, each time within a limit.
func (c *Canary) every(pause, limit time.Duration, do func(context.Context)) {
	for again := true; again; again = upstream.Pause(c.ctx, pause) {
		ctx, cancel := context.WithTimeout(c.ctx, limit)
		do(ctx)
		cancel()
	}
}

// closeTimeout bounds the last write to the store.
const closeTimeout = 700 * time.Millisecond

// Close gives up what is under way, writes what was found and ends within a
// second. Answered may still be called, and does nothing then.
func (c *Canary) Close() error {
	c.life.Lock()
	c.stop()
	c.life.Unlock()
	c.running.Wait()
	c.noise.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.recorder.flush(ctx)
}

// Wrote implements upstream.Shadow. It remembers what a write is about.
func (c *Canary) Wrote(call upstream.Call) { c.seen.Note(call) }

// Answered implements upstream.Shadow. For a call that is not sampled it costs some
// nanoseconds; for others the response is copied while the client reads it. It makes no call.
func (c *Canary) Answered(
	_ context.Context, caller upstream.Caller, call upstream.Call, sides upstream.Sides, answer upstream.Response,
) *mapping.Document {
	if c.sampled(call.Operation, &caller) {
		c.take(caller, call, sides, answer)
	}
	return answer.Document
}

// take begins a comparison, or drops it with a reason.
func (c *Canary) take(caller upstream.Caller, call upstream.Call, sides upstream.Sides, answer upstream.Response) {
	j := &job{
		caller: caller, operation: call.Operation, call: call.Copy(), began: time.Now(), run: c.compare, byCandidate: sides.Serving == c.options.Candidate,
	}
	c.pending.Add(1)
	defer c.recoverPanic(j)
	if j.call.Attachments != nil {
		j.call.Attachments.IfNoneMatch = "" // a condition would get a response without content
	}
	reason := c.dismissal(j, sides, answer)
	switch {
	case reason != "":
		// A write that failed may have been carried out.
		j.isMissing = c.replaysAll(call.Operation) && (reason == verdict.DropAnsweredFailed || reason == verdict.DropUnread)
		c.end(j, reason)
	case call.Operation.IsWrite():
		c.takeWrite(j, answer)
	default:
		if !answer.FromCache {
			*j.observed.of(j.byCandidate) = answer.Took
		}
		c.capture(j, answer)
	}
}

// dismissal says why a response is not even kept for a comparison, empty when it is.
func (c *Canary) dismissal(j *job, sides upstream.Sides, answer upstream.Response) verdict.DropReason {
	failed := failureOf(answer.Err)
	reason := failed.Reason
	_, isTrackers := trackerFailures[reason]
	isUnmapped, isWrite := reason == upstream.ReasonUnmapped, j.operation.IsWrite()
	j.isUnpaired = isUnmapped && failed.Status == http.StatusNotFound && j.byCandidate && !isWrite
	switch {
	case isWrite && reason == mapping.ReasonInexpressive:
		return ""
	case answer.Err == nil && answer.Document.NotModified:
		return verdict.DropNotModified
	case reason == mapping.ReasonCanceled:
		return verdict.DropUnread
	case isTrackers, isUnmapped && failed.Status == http.StatusInternalServerError: // an id that clients cannot be shown
		return j.either(verdict.DropCandidateFailed, verdict.DropAnsweredFailed)
	case reason != "" && !j.isUnpaired:
		return verdict.DropOwnError
	case !isWrite && c.options.Trackers[sides.Compared].Refuses():
		return j.either(verdict.DropOtherFailed, verdict.DropBreaker)
	case !c.replaysAll(j.operation) && !c.samples.Allow():
		return verdict.DropRateLimit
	}
	return ""
}

// SetSampling changes from now on which calls are compared. Shares below 0 count as
// 0 and those above 1 as 1; Sampling.Validate finds them.
func (c *Canary) SetSampling(sampling Sampling) {
	sampling = sampling.Clone()
	c.sampling.Store(&sampling)
}

// Sampling says which calls are compared now.
func (c *Canary) Sampling() Sampling { return c.sampling.Load().Clone() }

// sampled decides about one call.
func (c *Canary) sampled(operation mapping.Operation, caller *upstream.Caller) bool {
	sampling := c.sampling.Load()
	return sampling.Takes(operation, caller, c.salt) || c.replaysAll(operation) && sampling.Share(operation) > 0
}
