package cache

import (
	"context"
	"errors"
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// Details of Cache-Status, from a fixed set. A hit names its level or why it is stale, a read that was forwarded why there was
// no hit.
const (
	detailLocal       = "local"
	detailRedis       = "redis"
	detailRevalidate  = "stale-while-revalidate"
	detailIfError     = "stale-if-error"
	detailCold        = "cold"
	detailGeneration  = "generation"
	detailExpired     = "expired"
	detailUnreadable  = "unreadable"
	detailAway        = "redis-away"
	detailUndelivered = "undelivered-change"
	detailRequest     = "revalidation"
	detailOff         = "off"
	detailToken       = "token"
	detailOtherCaller = "refused-for-another"
)

// Why a read was forwarded, as in RFC 9211, section 2.2.
const (
	forwardMiss    = "miss"
	forwardStale   = "stale"
	forwardRequest = "request"
	forwardBypass  = "bypass"
)

// revalidateEvery is how often one credential may force a fresh response to one request. More often, Call.Fresh has no effect.
const revalidateEvery = time.Second

// read is one flag type read.
type read struct {
	caller  upstream.Caller
	request mapping.FlagTypesRequest
	key     key
	// own is the scope of the caller's credential, which key.scope is not if groups share.
	own    scope
	forced bool
}

// Do implements upstream.Tracker. The Cache of the reply to a flag type read says where it comes from, also beside an error.
func (c *Cache) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	switch {
	case call.FlagTypes != nil:
		return c.flagTypes(ctx, caller, *call.FlagTypes, call.Fresh)
	case call.CreateFlagType != nil || call.UpdateFlagTypes != nil:
		return c.write(ctx, caller, call)
	}
	return c.next.Do(ctx, caller, call)
}

// flagTypes reads flag types. Reads with a token are not cached. It ends with its session, by a logout that may go through any replica
// or past all of them, and its holder must not read on. To empty the cache at each logout instead would let everybody with an account
// do so at will.
func (c *Cache) flagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, forced bool) (mapping.Reply, error) {
	if caller.Credentials.Token != "" {
		return c.direct(ctx, caller, request, detailToken)
	}
	own := c.credentialScope(&caller)
	if forced {
		_, forced = c.revalidated.SetIfAbsent(c.keys.value(key{own, request.Product, request.Component}), struct{}{})
	}
	if !forced {
		if reply, err := c.Peek(ctx, caller, request); !errors.Is(err, upstream.ErrNotLocal) {
			return reply, err
		}
	}
	r := &read{caller: caller, request: request, own: own, forced: forced}
	r.key = key{scope: c.sharedScope(ctx, &caller, own), product: request.Product, component: request.Component}
	found := c.lookup(ctx, r)
	if found.entry != nil && !forced {
		h := c.hold(r.key, found.entry, &found)
		if reply, ok := c.serve(ctx, r, h, detailRedis); ok {
			return reply, nil
		}
	}
	return c.forward(ctx, r, found)
}

// direct asks the tracker for this caller alone and keeps nothing.
func (c *Cache) direct(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, detail string,
) (mapping.Reply, error) {
	c.options.Observer.Read(forwardBypass)
	reply, err := upstream.ReadFlagTypes(ctx, c.next, caller, request, false)
	reply.Cache = &mapping.CacheInfo{Forward: forwardBypass, Detail: detail}
	return reply, err
}

// failingTime is how long after a failure old entries are used at once.
const failingTime = 5 * time.Second

// failing tells whether the tracker failed lately, so that a read with an old entry does not wait to see it fail again.
func (c *Cache) failing(now time.Time) bool { return now.UnixNano() < c.failingUntil.Load() }

func (c *Cache) setFailing(fails bool) {
	until := int64(0)
	if fails {
		until = c.now().Add(failingTime).UnixNano()
	}
	c.failingUntil.Store(until)
}

// isFailure tells whether an error means that the tracker could not respond, or wants to be spared, for which an old entry is
// the best response. An error outside of the contract is a failure, too.
func isFailure(err error) bool {
	var e *mapping.Error
	if !errors.As(err, &e) {
		return err != nil
	}
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests
}

// isPersonal tells whether an error is about the caller who asked, and not about what those see who share the entry: the tracker limits
// its calls or, where callers with other headers and addresses share, Portico or a web server refuses its request. Others may ask.
func (r *read) isPersonal(err error) bool {
	var e *mapping.Error
	return errors.As(err, &e) && (e.Status == http.StatusTooManyRequests ||
		r.key.scope.kind != kindCredential && !e.FromTracker() && isRefusal(err))
}

// isRefusal tells whether an error is a response of the contract.
func isRefusal(err error) bool { return err != nil && !isFailure(err) }

// isCredentialCode tells whether a tracker refused the credential itself: wrong login, disabled account, bad key
// (tracker-behaviour.md sections 1 and 11).
func isCredentialCode(code int) bool {
	return code >= 300 && code <= mapping.CodeBadKey || code == mapping.CodeLoginRequired
}
