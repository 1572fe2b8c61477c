package canary

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// TestRefusalsAreCountedWithoutAsking for a while, those of the same two trackers and operation only, and none twice.
func TestRefusalsAreCountedWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, about := newRefusals(), subject{reference: "old", candidate: "new", operation: mapping.OpAttachment}
		good, sides := &upstream.Answer{Document: mapping.NewDocument(nil)}, upstream.Sides{Answered: "old", Other: "new"}
		if r.counted(about.operation, sides, good) {
			t.Error("a refusal is known that was not found")
		}
		r.note(about)
		for name, c := range map[string]struct {
			operation mapping.Operation
			sides     upstream.Sides
			answer    *upstream.Answer
			want      bool
		}{
			"the same":              {about.operation, sides, good, true},
			"another operation":     {mapping.OpFlagTypes, sides, good, false},
			"a write":               {mapping.OpUpdateFlagTypes, sides, good, false},
			"the candidate answers": {about.operation, upstream.Sides{Answered: "new", Other: "old"}, good, false},
			"another candidate":     {about.operation, upstream.Sides{Answered: "old", Other: "newer"}, good, false},
			"an error":              {about.operation, sides, &upstream.Answer{Err: &mapping.Error{}}, false},
			"no answer":             {about.operation, sides, &upstream.Answer{}, false},
			"not modified":          {about.operation, sides, &upstream.Answer{Document: &mapping.Document{NotModified: true}}, false},
		} {
			if got := r.counted(c.operation, c.sides, c.answer); got != c.want {
				t.Errorf("%s: counted %v, want %v", name, got, c.want)
			}
		}
		time.Sleep(refusedFor)
		if r.counted(about.operation, sides, good) {
			t.Error("it is taken for granted without an end")
		}
		total := func() (sum int64) {
			r.take(func(of subject, n int64) {
				if of != about {
					t.Errorf("counted for %v", of)
				}
				sum += n
			})
			return sum
		}
		if first, second := total(), total(); first != 2 || second != 0 {
			t.Errorf("took %d and then %d, want 2 and none", first, second)
		}
	})
}

// TestRefusalsAreNotLost while they are counted, noted and taken at once.
func TestRefusalsAreNotLost(t *testing.T) {
	r, about := newRefusals(), subject{reference: "old", candidate: "new", operation: mapping.OpAttachment}
	good, sides := &upstream.Answer{Document: mapping.NewDocument(nil)}, upstream.Sides{Answered: "old", Other: "new"}
	const callers, times = 4, 2000
	var work, taking sync.WaitGroup
	var taken int64
	ended := make(chan struct{})
	taking.Go(func() {
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
			}
			r.take(func(_ subject, n int64) { taken += n })
		}
	})
	for range callers {
		work.Go(func() {
			for range times {
				if !r.counted(about.operation, sides, good) {
					r.note(about)
				}
			}
		})
	}
	work.Wait()
	close(ended)
	taking.Wait()
	if taken != callers*times {
		t.Errorf("%d were counted, want %d", taken, callers*times)
	}
}
