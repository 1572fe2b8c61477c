package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"portico/mapping"
	"portico/upstream"
)

// Kinds of scope.
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
	prints upstream.Fingerprints
	// agreed says that all processes have the secret.
	agreed bool
}

func newHasher(secret []byte, agreed bool) *hasher {
	return &hasher{string(secret), upstream.NewFingerprints(secret), agreed}
}

// credential gives the scope of a credential. Trackers differ in which kinds of it they look at (tracker-behaviour.md section
// 1, Credentials), so two callers share only if all kinds are equal. A login without a password counts for nothing.
func (h *hasher) credential(caller upstream.Caller) scope {
	have := &caller.Credentials
	if have.Login == "" || have.Password == "" {
		have.Login, have.Password = "", ""
	}
	print := h.prints.Credential(caller)
	if have.PageToken != "" {
		print = h.prints.Of(string(print[:]), have.PageToken)
	}
	return scope{kindCredential, [16]byte(print[:16])}
}

// groups gives the scope of the callers who are in exactly these groups, which are sorted and without doubles.
func (h *hasher) groups(names []string) scope {
	print := h.prints.Of(append([]string{"groups"}, names...)...)
	return scope{kindGroups, [16]byte(print[:16])}
}

// credentialScope is the scope of a caller who shares with no other. Where the tracker sees another credential, the scope has both, since
// settings may change what it sees, and each process reads them by itself.
func (c *Cache) credentialScope(caller *upstream.Caller) scope {
	if caller.Anonymous() {
		return scope{kind: kindAnonymous}
	}
	h := c.shared.hasher.Load()
	own := h.credential(*caller)
	if c.options.Keys == nil {
		return own
	}
	seen, _ := c.options.Keys(*caller) // who is refused gets no response, so nothing is kept
	if seen.Credentials == caller.Credentials {
		return own
	}
	shown := h.credential(seen)
	both := h.prints.Of(string(own.sum[:]), string(shown.sum[:]))
	return scope{kindCredential, [16]byte(both[:16])}
}

const (
	// groupsTTL is how long the groups of a credential are remembered.
	groupsTTL = time.Minute
	// failedGroupsTTL is how long groups that could not be asked for are not asked for again.
	failedGroupsTTL = 5 * time.Second
	// groupsPatience is how long a read waits for groups that were known before.
	groupsPatience = time.Second
)

// membership is the scope in which a credential shares entries until a certain time. While the tracker fails, it holds on
// until another time.
type membership struct {
	scope       scope
	until, last time.Time
}

// membership gives what is known of a credential, and whether it still holds.
func (c *Cache) membership(own scope, now time.Time) (m membership, current bool) {
	if c.options.Scope != ScopeGroup || own.kind == kindAnonymous {
		return membership{scope: own}, true
	}
	m, _ = c.groups.GetIfPresent(own)
	return m, now.Before(m.until)
}

// sharedScope gives the scope in which a caller shares entries, its own if its groups are not known. While the tracker fails, the
// groups that were known count for as long as old entries do.
func (c *Cache) sharedScope(ctx context.Context, caller *upstream.Caller, own scope) scope {
	now := c.now()
	known, current := c.membership(own, now)
	if current {
		return known.scope
	}
	var patience <-chan time.Time
	if now.Before(known.last) {
		wait := groupsPatience
		if c.failing(now) {
			wait = 0
		}
		patience = time.After(wait)
	}
	select {
	case result := <-c.learn(ctx, *caller, own):
		if learned, ok := result.Val.(scope); ok {
			return learned
		}
	case <-patience:
		c.setFailing(true)
		return known.scope
	case <-ctx.Done():
	}
	return own
}

// learn asks for the groups of a caller, once for all reads that wait for them.
func (c *Cache) learn(ctx context.Context, caller upstream.Caller, own scope) <-chan singleflight.Result {
	return c.learning.DoChan(own.String(), c.guarded(func() any {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.FillTimeout)
		defer cancel()
		names, err := c.options.Groups(ctx, caller)
		now := c.now()
		m := membership{scope: own, until: now.Add(failedGroupsTTL)}
		_, contract := errors.AsType[*mapping.Error](err)
		known, _ := c.groups.GetIfPresent(own)
		switch {
		case err == nil:
			slices.Sort(names)
			m.scope, m.until = c.shared.hasher.Load().groups(slices.Compact(names)), now.Add(groupsTTL)
			m.last = m.until.Add(c.options.StaleIfError)
		case now.Before(known.last) && (contract && isFailure(err) || errors.Is(err, context.DeadlineExceeded)):
			// The tracker fails. Any other error may mean that the credential is not what it was.
			m.scope, m.last = known.scope, known.last
		}
		c.groups.Set(own, m)
		return m.scope
	}))
}
