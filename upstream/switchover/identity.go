package switchover

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"portico/upstream"
)

// appendIdentity appends what stays the same of a caller: of a login its name, of
// a token or of cookies the user they are for, else the key, and for who shows
// nothing the address. Nothing of it is proved, and nothing but the side of a
// percentage hangs on it. The order is that of the tracker (wire-facts.md
// section 1, Credentials).
func appendIdentity(in []byte, caller *upstream.Caller) []byte {
	have := &caller.Credentials
	switch {
	case have.Login != "" && have.Password != "":
		return appendPart(append(in, 'l'), have.Login)
	case have.Token != "":
		if user, _, ok := strings.Cut(have.Token, "-"); ok && user != "" {
			return appendPart(append(in, 'u'), user)
		}
		return appendPart(append(in, 't'), have.Token)
	case have.LoginCookies():
		return appendPart(append(in, 'u'), cookieUser(have.Cookies))
	case have.APIKey != "":
		return appendPart(append(in, 'k'), strings.TrimSpace(have.APIKey))
	case have.Authorization != "":
		return appendPart(append(in, 'h'), have.Authorization)
	default:
		return appendPart(append(in, 'a'), caller.Address)
	}
}

// cookieUser is the user that login cookies are for.
func cookieUser(cookies string) string {
	for part := range strings.SplitSeq(cookies, ";") {
		if user, ok := strings.CutPrefix(strings.TrimSpace(part), "Bugzilla_login="); ok {
			return user
		}
	}
	return cookies
}

// share places a caller somewhere from 0 to below 1 for one rule: always at the
// same place, in this process and in any other, and for each rule elsewhere.
func share(rule string, caller *upstream.Caller) float64 {
	var buffer [256]byte
	in := appendIdentity(appendPart(buffer[:0], rule), caller)
	sum := sha256.Sum256(in)
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// digest stands for a caller's whole credential. Who shows none has the zero one.
type digest [16]byte

// digestOf makes the digest of a credential under a secret that nobody else has. A
// key is the same one as a bearer token, which is in both places.
func digestOf(secret []byte, caller *upstream.Caller) digest {
	if caller.Anonymous() {
		return digest{}
	}
	var buffer [512]byte
	have := &caller.Credentials
	in := append(buffer[:0], secret...)
	header := have.Authorization
	if token := have.Bearer(); token != "" && token == have.APIKey {
		header = ""
	}
	for _, part := range [...]string{have.Login, have.Password, have.Token, have.APIKey, header} {
		in = appendPart(in, part)
	}
	if have.LoginCookies() {
		in = appendLoginCookies(in, have.Cookies)
	}
	sum := sha256.Sum256(in)
	return digest(sum[:16])
}

// appendLoginCookies leaves out the cookies that say nothing of who it is, and
// that trackers change with every answer.
func appendLoginCookies(in []byte, cookies string) []byte {
	for part := range strings.SplitSeq(cookies, ";") {
		if strings.Contains(part, "Bugzilla_login") {
			in = appendPart(in, strings.TrimSpace(part))
		}
	}
	return in
}

// appendPart adds a text with its length before it, so that no two lists of parts
// look the same.
func appendPart(in []byte, text string) []byte {
	return append(binary.AppendUvarint(in, uint64(len(text))), text...)
}
