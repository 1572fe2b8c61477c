package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Options configure a Stack. The zero value is usable; zero fields mean the default in brackets.
type Options struct {
	Base     BaseOptions
	Limit    LimitOptions
	Break    BreakOptions
	Tries    int      // requests of one read in all, so that 1 switches retries off; one more if a kept connection had ended [3]
	Observer Observer // learns about every call [nil: none does]
	Trace    Trace    // follows calls [nil: none is followed]
}

// BaseOptions configure the connections to the tracker.
type BaseOptions struct {
	ConnectTimeout time.Duration // to connect, and again for the TLS handshake [3s]
	// HeaderTimeout limits the time from the last byte of the request to the end of the response header, the time of all tries of a read
	// without a deadline, each pause in sending a request and, up to 30 s, each pause in a response body while it is read [30s].
	HeaderTimeout time.Duration
	MaxIdleConns  int         // kept connections; only reads keep them [32]
	TLS           *tls.Config // is cloned
	Host          Host        // sent instead of the address that connections go to
	// Dial replaces the dialer: a Unix socket, a fixed address. It must observe its context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Host is the address that a tracker knows itself by, where that is not the one that connections go to.
type Host struct {
	Name   string // the value of Host, with a port where it is unusual
	Scheme string // the value of X-Forwarded-Proto: http or https
}

// Over returns a RoundTripper that sends requests through next under this address. It returns next if the address is zero.
func (h Host) Over(next http.RoundTripper) http.RoundTripper {
	if h == (Host{}) {
		return next
	}
	return addressed{next, h}
}

type addressed struct {
	next http.RoundTripper
	host Host
}

// RoundTrip implements http.RoundTripper.
func (a addressed) RoundTrip(req *http.Request) (*http.Response, error) {
	out := *req
	a.host.set(&out)
	return a.next.RoundTrip(&out)
}

// set changes a request that may be changed, but not its Header.
func (h Host) set(req *http.Request) {
	if h != (Host{}) {
		req.Host, req.Header = h.Name, req.Header.Clone()
		req.Header.Set("X-Forwarded-Proto", h.Scheme)
	}
}

// LimitOptions configure how many calls the tracker gets at a time.
type LimitOptions struct {
	Slots         int           // calls at a time [64]
	MaxSlots      int           // up to which slots grow while calls wait and responses take no longer for it [Slots]
	ReserveWrites int           // slots that only writes may take; -1 = none [Slots/8, at least 1 of 2]
	Queue         int           // calls that may wait for a slot; -1 = none [64]
	QueueWait     time.Duration // how long a call waits at most; negative = not at all [1s]
}

// BreakOptions configure the two breakers.
type BreakOptions struct {
	MinRequests  int           // results in the last 10 seconds below which the share of failures does not count [10]
	Unanswered   int           // opens after this many failures in a row, the last of them without a response [5]
	OpenFor      time.Duration // the time from opening to the first trial [1s, with a ProbeURL 100ms]
	TrialTimeout time.Duration // the longest deadline of a trial [10s]

	// ProbeURL is requested while a breaker is open and after calls that failed. Empty means no probes.
	ProbeURL string
	// Well judges a response to a probe with a status below 500 by the beginning of its body [all are good].
	Well func(status int, head []byte) bool
	// OnChange receives every change of state, in order. It must not block, and must not call the Breaker [does nothing].
	OnChange func(Change)
}

func (o Options) withDefaults() Options {
	o.Tries = cmp.Or(o.Tries, 3)

	base := &o.Base
	base.ConnectTimeout = cmp.Or(base.ConnectTimeout, 3*time.Second)
	base.HeaderTimeout = cmp.Or(base.HeaderTimeout, 30*time.Second)
	base.MaxIdleConns = cmp.Or(base.MaxIdleConns, 32)
	if base.Dial == nil {
		base.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}

	limit := &o.Limit
	limit.Slots = cmp.Or(limit.Slots, 64)
	limit.MaxSlots = max(limit.Slots, limit.MaxSlots)
	limit.ReserveWrites = max(0, cmp.Or(limit.ReserveWrites, limit.Slots/8, min(1, limit.Slots/2)))
	limit.Queue = max(0, cmp.Or(limit.Queue, 64))
	limit.QueueWait = max(0, cmp.Or(limit.QueueWait, time.Second))

	breaks := &o.Break
	openFor := time.Second
	if breaks.ProbeURL != "" {
		openFor = 100 * time.Millisecond
	}
	breaks.MinRequests = cmp.Or(breaks.MinRequests, 10)
	breaks.Unanswered = cmp.Or(breaks.Unanswered, 5)
	breaks.OpenFor = cmp.Or(breaks.OpenFor, openFor)
	breaks.TrialTimeout = cmp.Or(breaks.TrialTimeout, 10*time.Second)
	return o
}
