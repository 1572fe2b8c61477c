package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
	"sync"

	"portico/upstream"
)

// Kinds of scope. They are part of the HMAC, so that a group name can never stand for a credential.
const (
	kindAnonymous  = 'a'
	kindCredential = 'c'
	kindGroups     = 'g'
)

// scope stands for the callers who share an entry. It is all of a credential that is ever kept, and all that is in keys.
type scope struct {
	kind byte
	sum  [16]byte
}

// String names the scope for operators and in keys.
func (s scope) String() string {
	switch s.kind {
	case kindCredential:
		return "credential " + hex.EncodeToString(s.sum[:])
	case kindGroups:
		return "groups " + hex.EncodeToString(s.sum[:])
	}
	return "anonymous"
}

// hasher makes scopes under one secret. It is safe for concurrent use.
type hasher struct {
	secret string
	// agreed says that all processes have the secret.
	agreed bool
	pool   sync.Pool
}

// hashState is what one HMAC needs. It is used again.
type hashState struct {
	mac     hash.Hash
	in, out []byte
}

func newHasher(secret []byte, agreed bool) *hasher {
	h := &hasher{secret: string(secret), agreed: agreed}
	h.pool.New = func() any { return &hashState{mac: hmac.New(sha256.New, []byte(h.secret))} }
	return h
}

// credential gives the scope of a credential. Trackers differ in which kinds of it they look at (tracker-behaviour.md section
// 1, Credentials), so two callers share only if all kinds are equal. The forms in which a key can be sent are one kind, and
// white space around it does not count.
func (h *hasher) credential(have upstream.Credentials) scope {
	return h.sum(kindCredential, func(in []byte) []byte {
		if have.Login != "" && have.Password != "" {
			in = appendPart(appendPart(append(in, 'l'), have.Login), have.Password)
		}
		in = appendNonEmpty(in, 't', have.Token)
		key := strings.TrimSpace(have.APIKey)
		in = appendNonEmpty(in, 'k', key)
		if bearer := have.Bearer(); bearer == "" || bearer != key {
			in = appendNonEmpty(in, 'h', have.Authorization)
		}
		if have.LoginCookies() {
			in = appendCookies(in, have.Cookies)
		}
		return in
	})
}

// appendCookies adds the cookies that can log a user in. Parts in which such a name stands anywhere are taken whole, as
// servers differ in how they split.
func appendCookies(in []byte, cookies string) []byte {
	for part := range strings.SplitSeq(cookies, ";") {
		if strings.Contains(part, "Bugzilla_login") {
			in = appendPart(append(in, 'c'), strings.TrimSpace(part))
		}
	}
	return in
}

// groups gives the scope of the callers who are in exactly these groups, which are sorted and without doubles.
func (h *hasher) groups(names []string) scope {
	return h.sum(kindGroups, func(in []byte) []byte {
		for _, name := range names {
			in = appendPart(in, name)
		}
		return in
	})
}

func (h *hasher) sum(kind byte, parts func(in []byte) []byte) scope {
	state := h.pool.Get().(*hashState)
	defer h.pool.Put(state)
	state.in = parts(append(state.in[:0], kind))
	state.mac.Reset()
	state.mac.Write(state.in)
	clear(state.in)
	state.out = state.mac.Sum(state.out[:0])
	s := scope{kind: kind}
	copy(s.sum[:], state.out)
	return s
}

func appendNonEmpty(in []byte, kind byte, text string) []byte {
	if text == "" {
		return in
	}
	return appendPart(append(in, kind), text)
}

// appendPart adds a text with its length before it, so that no two lists of parts are equal.
func appendPart(in []byte, text string) []byte {
	return append(binary.AppendUvarint(in, uint64(len(text))), text...)
}
