package upstream

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Identity identifies a caller within this process: the address together with all
// that was shown to log in, whichever way it came. It must not leave the process, since it is not keyed.
// Identity allocates nothing.
func (c Caller) Identity() [16]byte {
	var buffer [512]byte
	text, have, authorization := buffer[:0], &c.Credentials, c.Credentials.Authorization
	key := strings.TrimSpace(have.APIKey)
	if key != "" && key == have.Bearer() {
		authorization = ""
	}
	for _, part := range [...]string{c.Address, key, have.Login, have.Password, have.Token, authorization} {
		text = AppendPart(text, part)
	}
	for cookie := range strings.SplitSeq(have.Cookies, ";") {
		if (Credentials{Cookies: cookie}).LoginCookies() {
			text = AppendPart(text, strings.TrimSpace(cookie))
		}
	}
	sum := sha256.Sum256(text)
	return [16]byte(sum[:16])
}

// Position maps a caller to a number from 0 to below 1: the same one in every
// process and at any time, and an unrelated one for each salt. A share of the callers is
// those whose position is below it. Trackers decide by login, then by token or cookies,
// then by key (tracker-behaviour.md section 1, Credentials), and so does Position: of a login it takes
// the name, of a token or cookies the user that they are for, and the address of a
// caller that shows nothing. None of it is verified, so nothing else may depend on it.
// Position allocates nothing.
func (c Caller) Position(salt string) float64 {
	var buffer [256]byte
	in, have := AppendPart(buffer[:0], salt), &c.Credentials
	switch user, _, _ := strings.Cut(have.Token, "-"); {
	case have.Login != "" && have.Password != "":
		in = AppendPart(append(in, 'l'), have.Login)
	case user != "" && user != have.Token:
		in = AppendPart(append(in, 'u'), user)
	case have.Token != "":
		in = AppendPart(append(in, 't'), have.Token)
	case have.LoginCookies():
		in = AppendPart(append(in, 'u'), have.cookieUser())
	case have.APIKey != "":
		in = AppendPart(append(in, 'k'), strings.TrimSpace(have.APIKey))
	case have.Authorization != "":
		in = AppendPart(append(in, 'h'), have.Authorization)
	default:
		in = AppendPart(append(in, 'a'), c.Address)
	}
	sum := sha256.Sum256(in)
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// cookieUser is the user that login cookies are for.
func (c *Credentials) cookieUser() string {
	for part := range strings.SplitSeq(c.Cookies, ";") {
		if user, ok := strings.CutPrefix(strings.TrimSpace(part), "Bugzilla_login="); ok {
			return user
		}
	}
	return c.Cookies
}

// AppendPart adds a text with its length before it, so that no two lists of parts
// look the same.
func AppendPart(in []byte, text string) []byte {
	return append(binary.AppendUvarint(in, uint64(len(text))), text...)
}
