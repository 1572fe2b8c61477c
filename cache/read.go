package cache

import (
	"context"
	"errors"
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// Words about answers, from a fixed set. A hit names its level or why it is stale, a
// read that was forwarded why there was no hit.
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
	detailRolledBack  = "redis-rolled-back"
	detailRequest     = "revalidation"
	detailOff         = "off"
	detailName        = "long-name"
	detailToken       = "token"
	detailBusy        = "too-many-fills"
	detailOtherCaller = "refused-for-another"
)

// Why a read was forwarded, as in RFC 9211, section 2.2.
const (
	forwardMiss    = "miss"
	forwardStale   = "stale"
	forwardRequest = "request"
	forwardBypass  = "bypass"
)

// revalidateKey marks the contexts that Revalidate made.
type revalidateKey struct{}

// Revalidate marks a context so that a flag type read asks the tracker even when
// there is an answer, as the client's Cache-Control: no-cache demands. A caller
// who does so too often is answered as usual.
func Revalidate(ctx context.Context) context.Context {
	return context.WithValue(ctx, revalidateKey{}, true)
}

// read is one flag type read.
type read struct {
	caller  upstream.Caller
	request mapping.FlagTypesRequest
	key     key
	// own is the scope of the caller's credential, which key.scope is not
	// where groups share.
	own    scope
	forced bool
}

// FlagTypes implements upstream.Tracker. The reply's Cache says how it was come by,
// also beside an error.
func (c *Cache) FlagTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest,
) (mapping.FlagTypes, error) {
	switch {
	case c.off():
		return c.direct(ctx, caller, request, detailOff)
	case !cacheable(request):
		return c.direct(ctx, caller, request, detailName)
	case caller.Credentials.Token != "":
		// A token ends with its session, by a logout that may go through any replica or past all of them, and its holder
		// must not read on. To empty the cache at each logout instead would let everybody with an account do so at will.
		return c.direct(ctx, caller, request, detailToken)
	}
	// The order matters: an answer counts only if no change came after this.
	present := c.generation.present()
	own := c.credentialScope(&caller)
	k := key{scope: c.sharing(ctx, &caller, own), product: request.Product, component: request.Component}
	now := c.now()
	forced := ctx.Value(revalidateKey{}) != nil && c.revalidate.allows(own, now)
	h := c.local.get(k, present, now)
	early := false
	if h != nil && !forced && h.state(now, &c.options) == fresh {
		if early = h.early(now); !early {
			return c.hit(h.entry, now, detailLocal)
		}
	}
	r := &read{caller: caller, request: request, key: k, own: own, forced: forced}
	if h != nil && !forced {
		if reply, done, err := c.settle(ctx, r, h, detailLocal, early); done {
			return reply, err
		}
	}
	return c.consult(ctx, r)
}

// credentialScope is who the caller is.
func (c *Cache) credentialScope(caller *upstream.Caller) scope {
	if caller.Anonymous() {
		return scope{kind: kindAnonymous}
	}
	return c.hasher.Load().credential(caller.Credentials)
}

// consult goes on where the local level has no answer.
func (c *Cache) consult(ctx context.Context, r *read) (mapping.FlagTypes, error) {
	found, err := c.look(ctx, r)
	if err != nil {
		return mapping.FlagTypes{}, err
	}
	if found.entry != nil && !r.forced {
		h := c.local.put(r.key, found.entry, found.seen, found.checked)
		if reply, done, err := c.settle(ctx, r, h, detailRedis, h.early(found.checked)); done {
			return reply, err
		}
	}
	return c.forward(ctx, r, found)
}

// settle answers from an entry if it may be given without waiting, and has it
// replaced in the background if it is stale or chosen to be so early.
func (c *Cache) settle(
	ctx context.Context, r *read, h *held, level string, early bool,
) (mapping.FlagTypes, bool, error) {
	now := c.now()
	switch h.state(now, &c.options) {
	case fresh:
		if early {
			c.refresh(ctx, r, h, now)
		}
		reply, err := c.hit(h.entry, now, level)
		return reply, true, err
	case revalidating:
		c.refresh(ctx, r, h, now)
		reply, err := c.hit(h.entry, now, detailRevalidate)
		return reply, true, err
	case emergency:
		if c.sick.is(now) {
			c.refresh(ctx, r, h, now)
			reply, err := c.hit(h.entry, now, detailIfError)
			return reply, true, err
		}
	}
	return mapping.FlagTypes{}, false, nil
}

// hit makes the answer from an entry.
func (c *Cache) hit(e *entry, now time.Time, detail string) (mapping.FlagTypes, error) {
	age := e.age(now)
	info := &mapping.CacheInfo{Hit: true, Stale: age >= e.soft, TTL: e.soft - age, Age: age, Detail: detail}
	outcome := detail
	if info.Stale {
		outcome = "stale"
	}
	if e.refusal != nil {
		outcome = "negative"
	}
	c.options.Observer.Read(outcome)
	return e.reply(info)
}

// reply gives the entry's text in a document of its own. The bytes are shared and
// nobody changes them.
func (e *entry) reply(info *mapping.CacheInfo) (mapping.FlagTypes, error) {
	if e.refusal != nil {
		refusal := *e.refusal
		return mapping.FlagTypes{Cache: info}, &refusal
	}
	document := mapping.NewDocument(e.text)
	document.ETag = e.etag
	return mapping.FlagTypes{Document: document, Cache: info}, nil
}

// direct asks the tracker for this caller alone and remembers nothing.
func (c *Cache) direct(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, detail string,
) (mapping.FlagTypes, error) {
	if err := ctx.Err(); err != nil {
		return mapping.FlagTypes{}, err // who asks so wants what is at hand only, and comes again
	}
	c.options.Observer.Read(forwardBypass)
	reply, err := c.next.FlagTypes(ctx, caller, request)
	reply.Cache = &mapping.CacheInfo{Forward: forwardBypass, Detail: detail}
	return reply, err
}

// isSickness tells whether an error means that the tracker could not answer, or
// wants to be spared, which an old answer does best. All that is no error of the
// contract is a failure, too.
func isSickness(err error) bool {
	var e *mapping.Error
	if !errors.As(err, &e) {
		return err != nil
	}
	switch e.Reason {
	case mapping.ReasonTimeout, mapping.ReasonUnreachable, mapping.ReasonBreakerOpen,
		mapping.ReasonOverload, mapping.ReasonBadAnswer, mapping.ReasonInternal:
		return true
	}
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests
}

// isRefusal tells whether an error is an answer.
func isRefusal(err error) bool { return err != nil && !isSickness(err) }
