package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/netip"

	"portico/upstream"
)

// fingerprint stands for somebody or something that must not be kept in clear.
type fingerprint [sha256.Size]byte

// fingerprints makes them under a key that nobody knows but those who share them, so that what is kept does not tell which
// credentials were seen.
type fingerprints struct{ key [sha256.Size]byte }

func newFingerprints() fingerprints {
	var f fingerprints
	_, _ = rand.Read(f.key[:]) // crypto/rand.Read never fails
	return f
}

// of makes the fingerprint of some texts in their order. Each has its length before it, so no two lists look alike.
func (f fingerprints) of(texts ...string) fingerprint {
	sum := hmac.New(sha256.New, f.key[:])
	var length [8]byte
	for _, text := range texts {
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		_, _ = sum.Write(length[:]) // a hash takes everything
		_, _ = sum.Write([]byte(text))
	}
	return fingerprint(sum.Sum(nil))
}

// credential makes the fingerprint of what a caller showed. It is the same whichever way a credential came, and cookies that
// say nothing of a login change nothing.
func (f fingerprints) credential(caller upstream.Caller) fingerprint {
	have := caller.Credentials
	authorization := have.Authorization
	if have.Bearer() != "" {
		authorization = ""
	}
	login, session := loginCookies(have.Cookies)
	return f.of("credential", have.APIKey, have.Login, have.Password, have.Token, authorization, login, session)
}

// loginCookies takes the two cookies of a login out of a Cookie header.
func loginCookies(header string) (login, session string) {
	cookies, err := http.ParseCookie(header)
	if err != nil {
		return header, ""
	}
	for _, cookie := range cookies {
		switch cookie.Name {
		case "Bugzilla_login":
			login = cookie.Value
		case "Bugzilla_logincookie":
			session = cookie.Value
		}
	}
	return login, session
}

// address makes the fingerprint of a client's address. In IPv6 one client has a whole network of 64 bits to ask from.
func (f fingerprints) address(text string) fingerprint {
	if address, err := netip.ParseAddr(text); err == nil && address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			text = network.String()
		}
	}
	return f.of("address", text)
}
