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

// acceptedCallers are those whose last write the tracker has carried out. Of the other callers of an address one at a time may have a recorded write
// under way. Since a write may name many objects, a client with an invalid key could otherwise keep all writes waiting.
type acceptedCallers struct {
	prints upstream.Fingerprints
	known  *otter.Cache[upstream.Fingerprint, struct{}]
}

func newAcceptedCallers() acceptedCallers {
	return acceptedCallers{upstream.NewFingerprints(nil), otter.Must(&otter.Options[upstream.Fingerprint, struct{}]{MaximumSize: maxAccepted})}
}

// turn names the lock that a caller has to hold while it writes: none for one that is accepted, and else that of its address.
func (a *acceptedCallers) turn(caller upstream.Caller) []string {
	if _, accepted := a.known.GetIfPresent(a.prints.Credential(caller)); accepted {
		return nil
	}
	return []string{fmt.Sprintf("turn %x", a.prints.Address(caller.Address))}
}

// note takes the outcome of a caller's write.
func (a *acceptedCallers) note(caller upstream.Caller, outcome error) {
	credential := a.prints.Credential(caller)
	if refusal, ok := errors.AsType[*mapping.Error](outcome); ok && refusal.FromTracker() {
		a.known.Invalidate(credential)
	} else if outcome == nil {
		a.known.Set(credential, struct{}{})
	}
}
