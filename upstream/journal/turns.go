package journal

import (
	"context"
	"errors"

	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/upstream"
)

// maxAccepted bounds the callers that are remembered as accepted.
const maxAccepted = 16_384

// turns keep clients that the tracker refuses from holding objects all the time. A caller is accepted if the tracker has carried out its last
// write. Of the other callers of an address one at a time may have a recorded write under way. Since a write may name many objects, a client with an
// invalid key could otherwise keep all writes waiting.
type turns struct {
	locks
	prints   upstream.Fingerprints
	accepted *otter.Cache[upstream.Fingerprint, struct{}]
}

func newTurns() turns {
	return turns{
		locks: locks{held: map[string]chan struct{}{}}, prints: upstream.NewFingerprints(nil),
		accepted: otter.Must(&otter.Options[upstream.Fingerprint, struct{}]{MaximumSize: maxAccepted}),
	}
}

// take waits for the turn of a caller. The function that it returns is called once with the outcome of the write.
func (t *turns) take(ctx context.Context, caller upstream.Caller) (over func(error), err error) {
	var address []string
	credential := t.prints.Credential(caller)
	if _, accepted := t.accepted.GetIfPresent(credential); !accepted {
		print := t.prints.Address(caller.Address)
		address = []string{string(print[:])}
	}
	if err := t.lock(ctx, address); err != nil {
		return nil, err
	}
	return func(outcome error) {
		if outcome == nil {
			t.accepted.Set(credential, struct{}{})
		} else if refusal, ok := errors.AsType[*mapping.Error](outcome); ok && refusal.FromTracker() {
			t.accepted.Invalidate(credential)
		}
		t.unlock(address)
	}, nil
}
