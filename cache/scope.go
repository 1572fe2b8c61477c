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

// Kinds of scope. They are part of the HMAC, so that a group name can never
// stand for a credential.
const (
	kindAnonymous  = 'a'
	kindCredential = 'c'
	kindGroups     = 'g'
)

// scope stands for those who share answers. It is all of a credential that is ever
// kept, and all that goes into keys.
type scope struct {
	kind byte
	sum  [16]byte
}

// String names the scope in what operators see.
func (s scope) String() string {
	switch s.kind {
	case kindCredential:
		return "credential " + hex.EncodeToString(s.sum[:])
	case kindGroups:
		return "groups " + hex.EncodeToString(s.sum[:])
	}
	return "anonymous"
}

// hasher makes scopes under one secret.
type hasher struct {
	secret string
	pool   sync.Pool
}

// sumState is what one computation needs, kept for the next one.
type sumState struct {
	mac hash.Hash
	in  []byte
	out []byte
}

func newHasher(secret []byte) *hasher {
	h := &hasher{secret: string(secret)}
	h.pool.New = func() any { return &sumState{mac: hmac.New(sha256.New, []byte(h.secret))} }
	return h
}

// credential gives the scope of a credential. Every kind that was shown counts,
// because trackers differ in which they look at (wire-facts.md section 1,
// Credentials): two callers share only if all of it is equal. The forms in
// which a key can be sent are one kind, and white space around it is nothing.
func (h *hasher) credential(have upstream.Credentials) scope {
	state := h.pool.Get().(*sumState)
	defer h.pool.Put(state)
	in := append(state.in[:0], kindCredential)
	if have.Login != "" && have.Password != "" {
		in = appendPart(appendPart(append(in, 'l'), have.Login), have.Password)
	}
	in = appendNonEmpty(in, 't', have.Token)
	key := strings.TrimSpace(have.APIKey)
	in = appendNonEmpty(in, 'k', key)
	// A bearer token is the key once more.
	if bearer := have.Bearer(); bearer == "" || bearer != key {
		in = appendNonEmpty(in, 'h', have.Authorization)
	}
	in = appendCookies(in, have)
	state.in = in
	return h.finish(state, kindCredential)
}

// groups gives the scope of everybody who is in exactly these groups, which are
// sorted and without doubles.
func (h *hasher) groups(names []string) scope {
	state := h.pool.Get().(*sumState)
	defer h.pool.Put(state)
	in := append(state.in[:0], kindGroups)
	for _, name := range names {
		in = appendPart(in, name)
	}
	state.in = in
	return h.finish(state, kindGroups)
}

func (h *hasher) finish(state *sumState, kind byte) scope {
	s := scope{kind: kind}
	state.mac.Reset()
	state.mac.Write(state.in)
	clear(state.in)
	state.out = state.mac.Sum(state.out[:0])
	copy(s.sum[:], state.out)
	return s
}

// appendCookies adds the cookies that can log somebody in. Parts in which such a
// name stands at all are taken whole, as servers differ in how they split.
func appendCookies(in []byte, have upstream.Credentials) []byte {
	if have.Cookies == "" || !have.LoginCookies() {
		return in
	}
	for part := range strings.SplitSeq(have.Cookies, ";") {
		if strings.Contains(part, "Bugzilla_login") {
			in = appendPart(append(in, 'c'), strings.TrimSpace(part))
		}
	}
	return in
}

func appendNonEmpty(in []byte, kind byte, text string) []byte {
	if text == "" {
		return in
	}
	return appendPart(append(in, kind), text)
}

// appendPart adds a text with its length before it, so that no two lists of parts
// look the same.
func appendPart(in []byte, text string) []byte {
	return append(binary.AppendUvarint(in, uint64(len(text))), text...)
}
