package canary

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
)

const (
	// mostPayload is the longest payload, in base64, that is kept for a replay. More
	// would be noticed by the client, whose request it belongs to.
	mostPayload = 256 << 10
	// markerEvery is how often the proof of isolation is made anew.
	markerEvery = time.Minute
)

// marker knows whether the candidate is proved to be isolated.
type marker struct{ proved atomic.Bool }

// watchMarker makes the proof, and makes it again as long as the Canary lives.
func (c *Canary) watchMarker() {
	ticker := time.NewTicker(markerEvery)
	defer ticker.Stop()
	for {
		proved := c.isIsolated(c.ctx)
		if c.marker.proved.Swap(proved) != proved {
			c.options.Logger.Info("the proof that the candidate is isolated has changed", "proved", proved)
		}
		select {
		case <-c.ctx.Done():
			c.marker.proved.Store(false)
			return
		case <-ticker.C:
		}
	}
}

// isIsolated asks all trackers for the product that only an isolated candidate has.
func (c *Canary) isIsolated(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	for name, tracker := range c.options.Trackers {
		caller, _ := c.callerFor(upstream.Caller{}, name)
		reply, err := tracker.FlagTypes(ctx, caller, mapping.FlagTypesRequest{Product: c.options.Marker})
		if err == nil {
			_ = reply.Close() // its text has been read
		}
		if (name == c.options.Candidate) != (err == nil) || name != c.options.Candidate && !isNoProduct(err) {
			return false
		}
	}
	return true
}

// isNoProduct tells the tracker's own word from a failure, which proves nothing.
func isNoProduct(err error) bool {
	const noProduct = 106
	said, ok := errors.AsType[*mapping.Error](err)
	return ok && said.FromTracker() && (said.Code == noProduct || said.Code == mapping.CodeNotFound)
}

// takeReplay keeps what a write needs to be made once more. Only the candidate is
// ever written to. The write takes its place now, when it is answered, whenever the
// client has read the answer.
func (c *Canary) takeReplay(j *job, answer upstream.Answer) {
	reason := DropReason("")
	switch {
	case !c.replays.join(j, answer.Took):
		reason = DropQueueFull
	case !c.marker.proved.Load():
		reason = DropNotIsolated
	case j.call.CreateAttachment != nil:
		reason = c.copyPayload(j)
	}
	if reason != "" {
		c.abandon(j, reason)
		return
	}
	j.step = (*Canary).replay
	c.capture(j, answer)
}

// copyPayload takes over what belongs to the client's request.
func (c *Canary) copyPayload(j *job) DropReason {
	request := *j.call.CreateAttachment
	size := request.Data.EncodedLen()
	if size > mostPayload {
		return DropPayload
	}
	if !c.hold(j, size) {
		return DropMemory
	}
	text, err := io.ReadAll(request.Data.Reader())
	if err != nil {
		return DropPayload
	}
	j.payload, request.Data = text, nil
	j.call.CreateAttachment = &request
	return ""
}

// replay makes the write on the candidate, once, whatever comes of it.
func (c *Canary) replay(ctx context.Context, j *job) bool {
	reason := DropNotIsolated
	if c.marker.proved.Load() {
		reason = c.restorePayload(j)
	}
	if reason == "" {
		reason = c.again(ctx, j)
	}
	if request := j.call.CreateAttachment; request != nil {
		_ = request.Data.Close() // it is in memory
	}
	if reason == "" {
		j.first, reason = c.clientSaw(j, false)
	}
	if reason != "" {
		c.giveUp(j, reason)
		return false
	}
	c.conclude(j, c.suspects(j, c.differences(j, j.first, j.second)), kindIsolated, OutcomeSame)
	return false
}

// again makes the write. It is made also where its plans cannot be compared, since
// those that follow build on it.
func (c *Canary) again(ctx context.Context, j *job) DropReason {
	planned := c.plan(ctx, j)
	other := c.ask(ctx, j, j.candidate, false)
	j.second, j.replayed = other.reply, other.reason == ""
	c.lagged(j)
	if other.reason == "" && !planned {
		return DropPlanFailed
	}
	return other.reason
}

func (c *Canary) restorePayload(j *job) DropReason {
	if j.payload == nil {
		return ""
	}
	blob, err := mapping.BlobFromEncoded(j.payload)
	if err != nil {
		return DropPayload
	}
	j.call.CreateAttachment.Data = blob
	return ""
}
