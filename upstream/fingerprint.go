package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"
)

// Fingerprint stands for something that must not be kept in clear.
type Fingerprint [sha256.Size]byte

// Fingerprints makes them under a key, so that what is kept does not tell which credentials were seen. It is safe for concurrent use.
type Fingerprints struct{ states *sync.Pool }

// hashState is what one fingerprint needs. It is used again.
type hashState struct {
	mac     hash.Hash
	in, out []byte
}

// NewFingerprints takes a secret that others share, or nil for a key that is known here only.
func NewFingerprints(secret []byte) Fingerprints {
	key := sha256.Sum256(secret)
	if secret == nil {
		_, _ = rand.Read(key[:]) // crypto/rand.Read never fails
	}
	return Fingerprints{&sync.Pool{New: func() any { return &hashState{mac: hmac.New(sha256.New, key[:])} }}}
}

// Of makes the fingerprint of some texts in their order. Each has its length before it, so no two lists look alike.
func (f Fingerprints) Of(texts ...string) Fingerprint {
	state := f.states.Get().(*hashState)
	defer f.states.Put(state)
	for _, text := range texts {
		state.in = append(binary.BigEndian.AppendUint64(state.in, uint64(len(text))), text...)
	}
	state.mac.Reset()
	_, _ = state.mac.Write(state.in) // a hash takes everything
	clear(state.in)
	state.in = state.in[:0]
	state.out = state.mac.Sum(state.out[:0])
	return Fingerprint(state.out)
}

// Credential makes the fingerprint of what a caller showed. It is the same whichever way a credential came, and cookies that
// say nothing of a login change nothing.
func (f Fingerprints) Credential(caller Caller) Fingerprint {
	caller.Address = ""
	identity := caller.Identity()
	return f.Of("credential", string(identity[:]))
}

// Address makes the fingerprint of a client's address. In IPv6 one client has a whole network of 64 bits to call from.
func (f Fingerprints) Address(text string) Fingerprint {
	if address, err := netip.ParseAddr(text); err == nil && address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			text = network.String()
		}
	}
	return f.Of("address", text)
}
