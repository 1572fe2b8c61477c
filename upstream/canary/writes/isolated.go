package writes

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

const (
	// maxPayload is the longest payload, in base64, that is kept for a replay. It is copied before the client gets its response, and a longer one
	// would delay that.
	maxPayload = 256 << 10
	// clockStep is how much two times differ that are given in whole seconds and lie within one.
	clockStep = time.Second
	// maxLag bounds the delay that excuses a difference.
	maxLag = time.Minute
)

// TakePayload makes the payload of an attachment create independent of the client's request. It returns false where that is
// too long.
func TakePayload(write *upstream.Call) bool {
	if write.CreateAttachment == nil {
		return true
	}
	request := *write.CreateAttachment
	if request.Data.EncodedLen() > maxPayload {
		return false
	}
	text, err := io.ReadAll(request.Data.Reader())
	if err == nil {
		request.Data, err = jsonblob.BlobFromEncoded(string(text))
	}
	write.CreateAttachment = &request
	return err == nil
}

// IsMarked reports whether the candidate has a product and no other tracker has it. Only a tracker's own word that there is no
// such product counts as no; any other failure proves nothing.
func IsMarked[T upstream.Tracker](ctx context.Context, trackers map[string]T, candidate, product string, caller func(tracker string) upstream.Caller) bool {
	const noProduct = 106
	for name, tracker := range trackers {
		reply, err := tracker.Do(ctx, caller(name), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product}})
		if err == nil {
			_ = reply.Close() // its text has been read
		}
		failed, ok := errors.AsType[*mapping.Error](err)
		isMissing := ok && failed.FromTracker() && (failed.Code == noProduct || failed.Code == mapping.CodeNotFound)
		if name == candidate && err != nil || name != candidate && !isMissing {
			return false
		}
	}
	return true
}

// Replays knows how an isolated candidate got the writes that it should have got. The zero value is ready, and safe for
// concurrent use.
type Replays struct {
	mu           sync.Mutex
	last         time.Time // when the last write was answered
	gap, overlap bool
	lag          time.Duration
	turn         chan struct{} // closed when the last write has ended, nil before there is one
}

// Turn gives a write its place in the order in which the candidate gets them: turn is closed when the write before it has ended,
// and the caller closes done when this one has.
func (r *Replays) Turn() (turn, done chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == nil {
		r.turn = make(chan struct{})
		close(r.turn)
	}
	turn, r.turn = r.turn, make(chan struct{})
	return turn, r.turn
}

// Answered notes a write of the reference that was answered at a time and took so long. Which of two writes at the same time
// was carried out first is not known.
func (r *Replays) Answered(at time.Time, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.overlap = r.overlap || at.Add(-took).Before(r.last)
	r.last = at
}

// Missed notes that the candidate lacks a write from now on. It returns false if that was known.
func (r *Replays) Missed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.gap
	r.gap = true
	return !known
}

// Repeated notes that the candidate has got a write so much later than the reference.
func (r *Replays) Repeated(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag = max(r.lag, min(late, maxLag))
}

// Excuses reports whether a difference is a time at which something happened: on an isolated candidate all of it happened
// later, by no more than its writes were made later. Any other distance is a difference.
func (r *Replays) Excuses(d compare.Difference) bool {
	apart, ofChange := d.TimeApart()
	r.mu.Lock()
	defer r.mu.Unlock()
	return ofChange && apart <= r.lag+clockStep
}

// Note says why the candidate may hold something else than the reference, empty where nothing is known.
func (r *Replays) Note() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []string
	if r.gap {
		notes = append(notes, "The candidate did not get every write, so that it may hold something else.")
	}
	if r.overlap {
		notes = append(notes, "Some writes were made at the same time, so that the candidate may have got them in another order.")
	}
	return strings.Join(notes, " ")
}

// Forget discards the state, once both trackers hold the same data again.
func (r *Replays) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gap, r.overlap = false, false
}
