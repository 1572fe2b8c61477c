package cache

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"portico/upstream"
)

// failedGroupsMemory is how long nobody tries again to learn the groups of a
// credential after that failed.
const failedGroupsMemory = 5 * time.Second

// groupMemory knows for a while which groups a credential is in.
type groupMemory struct {
	cache  *otter.Cache[scope, remembered]
	asking singleflight.Group
}

// remembered is the scope that a credential shares in, until a certain time.
type remembered struct {
	scope scope
	until time.Time
}

func newGroupMemory() (*groupMemory, error) {
	cache, err := otter.New(&otter.Options[scope, remembered]{MaximumSize: 10_000})
	return &groupMemory{cache: cache}, err
}

// scope gives what the caller shares in. Whose groups are not known shares with
// nobody: the tracker will say what it thinks of the credential.
func (m *groupMemory) scope(ctx context.Context, o *Options, h *hasher, caller *upstream.Caller, own scope) scope {
	if known, ok := m.cache.GetIfPresent(own); ok && time.Now().Before(known.until) {
		return known.scope
	}
	return m.learn(ctx, o, h, *caller, own)
}

// learn asks for the groups of a caller, once for all who wait for them.
func (m *groupMemory) learn(ctx context.Context, o *Options, h *hasher, caller upstream.Caller, own scope) scope {
	now := time.Now()
	results := m.asking.DoChan(own.String(), func() (any, error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.FillTimeout)
		defer cancel()
		names, err := o.Groups(limited, caller)
		if err != nil {
			m.cache.Set(own, remembered{own, time.Now().Add(failedGroupsMemory)})
			return own, nil
		}
		shared := h.groups(distinct(names))
		m.cache.Set(own, remembered{shared, now.Add(o.GroupsTTL)})
		return shared, nil
	})
	select {
	case result := <-results:
		return result.Val.(scope)
	case <-ctx.Done():
		return own
	}
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
