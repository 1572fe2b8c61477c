package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Fingerprint stands for something that must not be kept in clear.
type Fingerprint [sha256.Size]byte

// Fingerprints makes them under a key, so that what is kept does not tell which credentials were seen.
type Fingerprints struct{ key [sha256.Size]byte }

// NewFingerprints takes a secret that others share, or nil for a key that is known here only.
func NewFingerprints(secret []byte) (f Fingerprints) {
	if secret == nil {
		_, _ = rand.Read(f.key[:]) // crypto/rand.Read never fails
		return f
	}
	return Fingerprints{sha256.Sum256(secret)}
}

// Of makes the fingerprint of some texts in their order. Each has its length before it, so no two lists look alike.
func (f Fingerprints) Of(texts ...string) Fingerprint {
	sum := hmac.New(sha256.New, f.key[:])
	for _, text := range texts {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text)))) // a hash takes everything
		_, _ = sum.Write([]byte(text))
	}
	return Fingerprint(sum.Sum(nil))
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
