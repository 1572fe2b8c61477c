package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"portico/mapping"
)

// Why a fill did not happen.
var (
	errBusy   = errors.New("too many flag type reads are under way")
	errClosed = errors.New("the cache is closed")
)

// filled is the outcome of one fill, shared by all who wait for it.
type filled struct {
	entry *entry
	err   error
	// stored says that Redis or the local level has the entry, shared that
	// Redis has, so that nobody waits for the lease any more.
	stored, shared bool
	// elsewhere says that another process asked the tracker.
	elsewhere bool
	// cookies are for the caller who led only.
	cookies []string
}

// forward asks the tracker, together with all who ask for the same, and gives an
// old answer instead when the tracker turns out to be sick.
func (c *Cache) forward(ctx context.Context, r *read, found look) (mapping.FlagTypes, error) {
	led := false
	results := c.fills.DoChan(c.flight(r, found), c.guarded(func() any {
		led = true
		return c.lead(ctx, r, found)
	}))
	result, err := await(ctx, results, found.entry)
	if err != nil {
		return mapping.FlagTypes{}, err
	}
	if result == nil { // the patience with the tracker is at its end
		c.sick.mark(c.now())
		return c.hit(found.entry, c.now(), detailIfError)
	}
	out, done := result.Val.(*filled)
	if !done {
		out = &filled{err: result.Err}
	}
	switch {
	case errors.Is(out.err, errBusy) || errors.Is(out.err, errClosed):
		return c.direct(ctx, r.caller, r.request, detailBusy)
	case isRefusal(out.err) && out.entry == nil && !led && r.key.scope.kind == kindGroups:
		return c.direct(ctx, r.caller, r.request, detailOtherCaller)
	case isSickness(out.err) && found.entry != nil:
		return c.hit(found.entry, c.now(), detailIfError)
	}
	return c.filledReply(r, found, out, led, result.Shared)
}

// flight names a fill: an answer counts for those only who asked under the same
// generation.
func (c *Cache) flight(r *read, found look) string {
	name := found.plain + found.stamp.String() + "|" + strconv.FormatUint(found.seen.turn, 10)
	if r.forced {
		return name + "|" + strconv.FormatUint(c.forced.Add(1), 10)
	}
	return name
}

// await waits for a fill, for as long as the client waits, and with an old answer
// at hand only for so long. No result and no error means to use that one.
func await(ctx context.Context, results <-chan singleflight.Result, old *entry) (*singleflight.Result, error) {
	var patience <-chan time.Time
	if old != nil {
		timer := time.NewTimer(old.patience())
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case result := <-results:
		return &result, nil
	case <-patience:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// filledReply answers one of those who waited for a fill.
func (c *Cache) filledReply(r *read, found look, out *filled, led, shared bool) (mapping.FlagTypes, error) {
	info := &mapping.CacheInfo{
		Forward: forwardMiss, Detail: found.why, Stored: out.stored, Collapsed: shared || out.elsewhere,
	}
	switch {
	case r.forced:
		info.Forward, info.Detail = forwardRequest, detailRequest
	case found.entry != nil:
		info.Forward = forwardStale
	}
	if out.err != nil {
		c.options.Observer.Read("error")
		return mapping.FlagTypes{Cache: info}, copyError(out.err)
	}
	c.options.Observer.Read(info.Forward)
	info.Age = out.entry.age(c.now())
	info.TTL = out.entry.soft - info.Age
	reply, err := out.entry.reply(info)
	if led && err == nil {
		reply.Cookies = out.cookies
	}
	return reply, err
}

// copyError keeps those who share an error from changing it for each other.
func copyError(err error) error {
	if e, ok := err.(*mapping.Error); ok { //nolint:errorlint // a wrapped one is shared but not changed
		own := *e
		return &own
	}
	return err
}

// lead carries a fill out, whatever becomes of the client that caused it.
func (c *Cache) lead(ctx context.Context, r *read, found look) *filled {
	return c.detached(ctx, func(ctx context.Context) *filled {
		// Somebody may have been here between the look and now.
		if h := c.local.get(r.key, found.seen, c.now()); !r.forced && h != nil && h.state(c.now(), &c.options) == fresh {
			return &filled{entry: h.entry, stored: true, elsewhere: true}
		}
		if found.stamp == (stamp{}) || r.forced {
			return c.ask(ctx, r, found)
		}
		if e := c.turn(ctx, r, &found); e != nil {
			c.local.put(r.key, e, found.seen, found.checked)
			return &filled{entry: e, stored: true, elsewhere: true}
		}
		out := c.ask(ctx, r, found)
		if !out.shared {
			c.release(found)
		}
		return out
	})
}

// detached runs a fill with a life of its own, if there is room for one more.
func (c *Cache) detached(ctx context.Context, fill func(context.Context) *filled) *filled {
	if !c.enter() {
		return &filled{err: errClosed}
	}
	defer c.work.Done()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return &filled{err: errBusy}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.FillTimeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	out := fill(ctx)
	if c.life.Err() != nil && out.err != nil {
		out.err = errClosed
	}
	return out
}

// ask asks the tracker and keeps what it says.
func (c *Cache) ask(ctx context.Context, r *read, found look) *filled {
	start, clock := c.now(), time.Now()
	reply, err := c.next.FlagTypes(ctx, r.caller, r.request)
	took := time.Since(clock)
	c.options.Observer.Fill(took, err)
	e := &entry{plain: found.plain, filled: start, took: took}
	switch {
	case err == nil:
		return c.accept(ctx, r, found, e, reply)
	case c.isNegative(r, err):
		c.sick.clear()
		errors.As(err, &e.refusal)
		e.refusal = &mapping.Error{
			Code: e.refusal.Code, Status: e.refusal.Status,
			Message: e.refusal.Message, Documentation: e.refusal.Documentation,
		}
		e.soft = c.options.NegativeTTL
		return c.keep(ctx, r, found, &filled{entry: e, err: err})
	case isRefusal(err):
		c.sick.clear()
		c.refused(ctx, r, found, err)
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.sick.mark(c.now())
	}
	return &filled{err: err}
}

// isNegative tells whether an error is the one answer that is worth remembering:
// no such component, in the usual form. A product that is not there looks like one that is out of
// sight, and comes into sight without anybody telling.
func (c *Cache) isNegative(r *read, err error) bool {
	var e *mapping.Error
	return c.options.NegativeTTL > 0 && r.request.Component != "" &&
		errors.As(err, &e) && e.Code == mapping.CodeNotFound && e.FromTracker() && len(e.Extra) == 0
}

// accept makes an entry of a reply. Replies with cookies belong to one caller and
// are not kept.
func (c *Cache) accept(ctx context.Context, r *read, found look, e *entry, reply mapping.FlagTypes) *filled {
	defer reply.Close()
	var text bytes.Buffer
	if reply.Document != nil {
		if _, err := reply.WriteTo(&text); err != nil {
			c.sick.mark(c.now())
			return &filled{err: err}
		}
		e.etag = reply.ETag
	}
	if trimmed := bytes.TrimLeft(text.Bytes(), " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		c.sick.mark(c.now())
		return &filled{err: badAnswer()}
	}
	c.sick.clear()
	// Nobody who appends to a copy of the slice may write into what is shared.
	e.text = slices.Clip(bytes.Clone(text.Bytes()))
	e.soft = c.options.TTL - time.Duration(rand.Float64()*float64(c.options.TTL)/10)
	out := &filled{entry: e, cookies: reply.Cookies}
	if len(reply.Cookies) > 0 {
		return out
	}
	return c.keep(ctx, r, found, out)
}

func badAnswer() error {
	return &mapping.Error{
		Code: mapping.CodeBadGateway, Status: http.StatusBadGateway, Reason: mapping.ReasonBadAnswer,
		Message: "The tracker's answer is not a JSON object.",
	}
}

// keep stores an entry, which nobody else has seen yet, in both levels.
func (c *Cache) keep(ctx context.Context, r *read, found look, out *filled) *filled {
	if found.doubt {
		out.entry.brief, out.entry.soft = true, min(out.entry.soft, briefLife)
	}
	// What became old meanwhile would only take the place of something newer.
	ctx, cancel := c.remote.brief(ctx, 2)
	defer cancel()
	under := found.stamp
	storable := under != stamp{} && under.generation == c.generation.present().text
	if storable && under.lot == "" {
		under.lot, storable = c.begun(ctx, r.request.Product)
	}
	out.entry.stamp = under.String()
	c.local.put(r.key, out.entry, found.seen, found.checked)
	out.shared = storable && c.store(ctx, r, found, out.entry)
	out.stored = out.shared || c.local.on()
	return out
}

// refused takes back what was known, as the tracker says no to this caller now.
// Where callers share, a credential that has become bad is its owner's affair.
func (c *Cache) refused(ctx context.Context, r *read, found look, err error) {
	var e *mapping.Error
	if r.key.scope.kind == kindGroups && errors.As(err, &e) && isCredentialCode(e.Code) {
		c.groups.forget(r.own)
		return
	}
	c.local.remove(r.key)
	if found.entry != nil {
		_ = c.remote.do(ctx, "delete", func(ctx context.Context) error {
			return c.remote.client.Del(ctx, c.keys.value(found.plain)).Err()
		})
	}
}

// isCredentialCode tells whether a tracker refused the credential itself: wrong
// login, disabled account, bad key (wire-facts.md sections 1 and 11).
func isCredentialCode(code int) bool {
	return code >= 300 && code <= mapping.CodeBadKey || code == mapping.CodeLoginRequired
}

// sicknessLasts is how long after a failure old answers are given at once.
const sicknessLasts = 5 * time.Second

// sickness remembers that the tracker failed, so that reads with an old answer do
// not wait to see it fail again.
type sickness struct{ until atomic.Int64 }

func (s *sickness) mark(now time.Time)    { s.until.Store(now.Add(sicknessLasts).UnixNano()) }
func (s *sickness) clear()                { s.until.Store(0) }
func (s *sickness) is(now time.Time) bool { return now.UnixNano() < s.until.Load() }
