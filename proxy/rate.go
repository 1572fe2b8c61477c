package proxy

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// RateLimits bound how often one caller may call. The zero value bounds no caller.
type RateLimits struct {
	// Anonymous is for each address that calls without a credential; Keyed is for each credential. A credential that no
	// tracker was seen to accept lately costs its address a call too, or a client that makes up keys could call without end.
	Anonymous, Keyed Rate
}

// Rate is how often one caller may call; the zero value is without end.
type Rate struct {
	// PerSecond is how many calls a second are let through in the long run.
	PerSecond int
	// Burst is how many calls may come at once; 0 is PerSecond.
	Burst int
}

// maxCallers bounds how many callers of a kind are remembered.
const maxCallers = 16384

// callerRates counts the calls of each caller.
type callerRates struct {
	prints    upstream.Fingerprints
	anonymous callLimiters
	// keyed are the credentials that a tracker has accepted, claimed those that none has accepted yet. They are kept apart, so
	// that made-up ones evict no other.
	keyed, claimed callLimiters
}

// newCallerRates returns nil where calls are not limited.
func newCallerRates(limits RateLimits) *callerRates {
	if limits.Anonymous.PerSecond == 0 && limits.Keyed.PerSecond == 0 {
		return nil
	}
	return &callerRates{
		prints: upstream.NewFingerprints(nil), anonymous: newCallLimiters(limits.Anonymous),
		keyed: newCallLimiters(limits.Keyed), claimed: newCallLimiters(limits.Keyed),
	}
}

// take counts a call and returns how long to wait when it is one too many, and whether the caller's credential is still to be
// proven.
func (c *callerRates) take(now time.Time, caller upstream.Caller) (wait time.Duration, unproven bool) {
	address, credential := c.prints.Address(caller.Address), c.prints.Credential(caller)
	if caller.Anonymous() {
		return c.anonymous.take(now, address), false
	}
	if _, proven := c.keyed.GetIfPresent(credential); proven {
		return c.keyed.take(now, credential), false
	}
	if wait := c.anonymous.take(now, address); wait > 0 {
		return wait, true
	}
	return c.claimed.take(now, credential), true
}

// accept remembers a credential that a tracker has accepted, with the calls that it has made.
func (c *callerRates) accept(caller upstream.Caller) {
	credential := c.prints.Credential(caller)
	if calls, ok := c.claimed.Invalidate(credential); ok {
		c.keyed.SetIfAbsent(credential, calls)
	}
}

// callLimiters are the callers of one kind.
type callLimiters struct {
	*otter.Cache[upstream.Fingerprint, *rate.Limiter]
	limit rate.Limit
	burst int
}

func newCallLimiters(r Rate) callLimiters {
	callers := otter.Must(&otter.Options[upstream.Fingerprint, *rate.Limiter]{MaximumSize: maxCallers})
	return callLimiters{callers, cmp.Or(rate.Limit(r.PerSecond), rate.Inf), cmp.Or(r.Burst, r.PerSecond)}
}

// take counts a call and returns how long to wait when it is one too many.
func (c callLimiters) take(now time.Time, key upstream.Fingerprint) time.Duration {
	calls, _ := c.ComputeIfAbsent(key, func() (*rate.Limiter, bool) { return rate.NewLimiter(c.limit, c.burst), false })
	taken := calls.ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

// admit counts a call, and refuses it when it is one too many. A write is counted when its body has been read, which may hold the
// credential.
func (rc *requestContext) admit() error {
	if rc.server.rates == nil {
		return nil
	}
	wait, unproven := rc.server.rates.take(time.Now(), rc.caller)
	rc.unproven = unproven
	if wait > 0 {
		limited := mapping.NewError(mapping.CodeRateLimited, mapping.ReasonRateLimited, "There were too many calls of this caller. Ask again later.")
		limited.RetryAfter = wait
		return limited
	}
	return nil
}

// markPassed notes that the tracker has accepted the credential of a request that passed through. Only reads of REST resources prove something: pages ignore most credentials,
// a refused write may look like a success, and other resources, such as version, respond to every caller.
func (rc *requestContext) markPassed() {
	if !rc.unproven || rc.status != http.StatusOK || rc.r.Method != http.MethodGet || !isREST(rc.path) {
		return
	}
	switch strings.Split(rc.path, "/")[2] {
	case "bug", "user", "product", "whoami":
		rc.markProven()
	}
}

// markProven notes that the tracker has carried a request out for its caller.
func (rc *requestContext) markProven() {
	if rc.unproven && bugzilla.SuccessProves(rc.caller.Credentials, rc.record.Operation.IsWrite()) {
		rc.server.rates.accept(rc.caller)
	}
}
