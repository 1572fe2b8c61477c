package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"portico/mapping"
	"portico/upstream"
)

// failedGroupsMemory is how long nobody tries again to learn the groups of a
// credential after that failed.
const failedGroupsMemory = 5 * time.Second

// groupsPatience is how long a read waits for groups that were known before.
const groupsPatience = time.Second

// groupMemory knows for a while which groups a credential is in.
type groupMemory struct {
	cache  *otter.Cache[scope, remembered]
	asking singleflight.Group
}

// remembered is the scope that a credential shares in, until a certain time. After
// that it is asked for anew; while the tracker cannot answer, what was known holds
// on until another time.
type remembered struct {
	scope       scope
	until, last time.Time
}

func newGroupMemory() (*groupMemory, error) {
	cache, err := otter.New(&otter.Options[scope, remembered]{MaximumSize: 10_000})
	return &groupMemory{cache: cache}, err
}

// sharing is who shares answers with the caller. Whose groups are not known shares
// with nobody: the tracker will say what it thinks of the credential. Who was known
// goes on with that while the tracker is sick, for as long as with old answers.
func (c *Cache) sharing(ctx context.Context, caller *upstream.Caller, own scope) scope {
	if c.options.Scope != ScopeGroup || own.kind == kindAnonymous {
		return own
	}
	now := c.now()
	known, there := c.groups.cache.GetIfPresent(own)
	if there && now.Before(known.until) {
		return known.scope
	}
	answers := c.learn(ctx, *caller, own)
	if there && now.Before(known.last) {
		return c.meanwhile(ctx, answers, own, known)
	}
	select {
	case result := <-answers:
		return scopeOf(result, own)
	case <-ctx.Done():
		return own
	}
}

// meanwhile gives what was known when the tracker does not say at once, and not even
// that long is waited for one that is sick. The question goes on.
func (c *Cache) meanwhile(ctx context.Context, answers <-chan singleflight.Result, own scope, known remembered) scope {
	patience := groupsPatience
	if c.sick.is(c.now()) {
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case result := <-answers:
		return scopeOf(result, known.scope)
	case <-ctx.Done():
	case <-timer.C:
		known.until = c.now().Add(failedGroupsMemory)
		c.groups.cache.ComputeIfPresent(own, func(present remembered) (remembered, otter.ComputeOp) {
			if present.until.After(known.until) {
				return present, otter.CancelOp
			}
			return known, otter.WriteOp
		})
	}
	return known.scope
}

// scopeOf gives the scope that was found out, or another one when nothing was.
func scopeOf(result singleflight.Result, otherwise scope) scope {
	if found, done := result.Val.(scope); done {
		return found
	}
	return otherwise
}

// learn asks for the groups of a caller, once for all who wait for them.
func (c *Cache) learn(ctx context.Context, caller upstream.Caller, own scope) <-chan singleflight.Result {
	h := c.hasher.Load()
	return c.groups.asking.DoChan(own.String(), c.guarded(func() any {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.FillTimeout)
		defer cancel()
		start := c.now()
		names, err := c.options.Groups(limited, caller)
		learned := remembered{scope: own, until: c.now().Add(failedGroupsMemory)}
		known, there := c.groups.cache.GetIfPresent(own)
		switch {
		case err == nil:
			learned.scope, learned.until = h.groups(distinct(names)), start.Add(c.options.GroupsTTL)
			learned.last = learned.until.Add(c.options.StaleIfError)
		case there && c.now().Before(known.last) && couldNotSay(err):
			learned.scope, learned.last = known.scope, known.last
		}
		c.groups.cache.Set(own, learned)
		return learned.scope
	}))
}

// couldNotSay tells whether the tracker was too sick to say which groups a caller is
// in. All else that goes wrong may mean that the credential is not what it was.
func couldNotSay(err error) bool {
	_, told := errors.AsType[*mapping.Error](err)
	return told && isSickness(err) || errors.Is(err, context.DeadlineExceeded)
}

func distinct(names []string) []string {
	return slices.Compact(slices.SortedFunc(slices.Values(names), strings.Compare))
}

// forget makes the groups of a credential be asked for again.
func (m *groupMemory) forget(own scope) { m.cache.Invalidate(own) }

func (m *groupMemory) close() { m.cache.StopAllGoroutines() }

// pacer allows something once in a while to each scope.
type pacer struct {
	every time.Duration
	last  *otter.Cache[scope, time.Time]
}

func newPacer(every time.Duration) *pacer {
	return &pacer{every: every, last: otter.Must(&otter.Options[scope, time.Time]{MaximumSize: 10_000})}
}

func (p *pacer) allows(who scope, now time.Time) bool {
	allowed := false
	p.last.Compute(who, func(last time.Time, found bool) (time.Time, otter.ComputeOp) {
		allowed = !found || now.Sub(last) >= p.every
		if allowed {
			return now, otter.WriteOp
		}
		return last, otter.CancelOp
	})
	return allowed
}

func (p *pacer) close() { p.last.StopAllGoroutines() }
