package journal

import (
	"errors"
	"fmt"

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
	prints   upstream.Fingerprints
	accepted *otter.Cache[upstream.Fingerprint, struct{}]
}

func newTurns() turns {
	return turns{upstream.NewFingerprints(nil), otter.Must(&otter.Options[upstream.Fingerprint, struct{}]{MaximumSize: maxAccepted})}
}

// of names the turn of a caller that has to wait for it.
func (t *turns) of(caller upstream.Caller) []string {
	if _, accepted := t.accepted.GetIfPresent(t.prints.Credential(caller)); accepted {
		return nil
	}
	return []string{fmt.Sprintf("turn %x", t.prints.Address(caller.Address))}
}

// note takes the outcome of a caller's write.
func (t *turns) note(caller upstream.Caller, outcome error) {
	credential := t.prints.Credential(caller)
	if refusal, ok := errors.AsType[*mapping.Error](outcome); ok && refusal.FromTracker() {
		t.accepted.Invalidate(credential)
	} else if outcome == nil {
		t.accepted.Set(credential, struct{}{})
	}
}
