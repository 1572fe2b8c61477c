package tracker

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of BMO and Harmony (tracker-behaviour.md section 14).
const (
	maxRequestBody = 16 << 20
	maxBadKeys     = 5
	rateWindow     = time.Minute
	blockTime      = time.Hour
)

// guard refuses a request before its operation is known: the wrong host, a blocked address or a body that is too large.
// It returns nil when the request may go on.
func (s *Server) guard(r *http.Request) *reply {
	if base := s.options.URLBase; base != "" {
		if u, err := url.Parse(base); err == nil && !strings.EqualFold(u.Host, r.Host) {
			a := s.mojoPage(http.StatusFound)
			a.header.Set("Location", base)
			return a
		} else if err == nil && u.Scheme == "https" && r.Header.Get("X-Forwarded-Proto") != "https" {
			return s.mojoPage(http.StatusInternalServerError)
		}
	}
	if s.options.RateLimit > 0 && s.rates.blocked(s.address(r), s.options.Now()) {
		return s.mojoPage(http.StatusTooManyRequests)
	}
	if s.mojolicious() && s.bodyTooLarge(r) {
		f := fail(codeUser, "the request is larger than %d bytes", maxRequestBody)
		if s.bmo() {
			f.code = codeNotScalars
		}
		a := s.restReply(r, form{contentType: typeJSON}, outcome{err: f, anonymous: true})
		a.header.Set("Connection", "close")
		return a
	}
	return nil
}

// bodyTooLarge reports whether the body is larger than the tracker takes. A chunked body is read up to the limit and counts as
// any other body from then on: BMO and Harmony understand it.
func (s *Server) bodyTooLarge(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > maxRequestBody
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBody+1))
	r.Body, r.TransferEncoding = io.NopCloser(strings.NewReader(string(raw))), nil
	return err == nil && len(raw) > maxRequestBody
}

// address is the address that rate limits count: the peer's, or with QuirkReverseProxy the last one of X-Forwarded-For.
func (s *Server) address(r *http.Request) string {
	if list := r.Header.Get("X-Forwarded-For"); list != "" && s.has(QuirkReverseProxy) {
		return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// limitRate counts a call of one kind against the caller's address. The first call above maximum is refused with an
// error and blocks the address.
func (c *call) limitRate(kind string, maximum int) error {
	s := c.server
	if s.options.RateLimit == 0 || s.rates.count(s.address(c.request), kind, maximum, s.options.Now()) {
		return nil
	}
	return fail(codeUser, "too many requests from your address")
}

// rates are the calls and the blocks of each address.
type rates struct {
	mu     sync.Mutex
	calls  map[string][]time.Time
	blocks map[string]time.Time
}

// count reports whether one more call is within the maximum of a window, and blocks the address if it is not.
func (l *rates) count(address, kind string, maximum int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := address + " " + kind
	list := slices.DeleteFunc(append(l.calls[key], now), func(at time.Time) bool { return now.Sub(at) >= rateWindow })
	l.calls[key] = list
	if len(list) > maximum {
		l.blocks[address] = now.Add(blockTime)
	}
	return len(list) <= maximum
}

// blocked reports whether an address is blocked. Each blocked request renews the block.
func (l *rates) blocked(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.blocks[address]) {
		return false
	}
	l.blocks[address] = now.Add(blockTime)
	return true
}

func (l *rates) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.blocks = map[string][]time.Time{}, map[string]time.Time{}
}
