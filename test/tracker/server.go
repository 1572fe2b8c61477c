package tracker

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Seed names the data that a server starts with and goes back to on Reset.
type Seed string

// The seeds.
const (
	// SeedFixture is the installation behind the recordings (tracker-behaviour.md section 13), with the test keys of keys.json.
	SeedFixture Seed = "fixture"
	// SeedDemo is a small realistic installation with keys that are easy to type.
	SeedDemo Seed = "demo"
	// SeedCopy is SeedDemo with other keys. Ids of bugs, attachments, flags and flag types are higher by 100.
	SeedCopy Seed = "copy"
)

// The dialects.
const (
	DialectBugzilla5 = "bugzilla-5"
	DialectBMO       = "bmo"
	DialectHarmony   = "harmony"
)

// Dialects lists the dialects.
func Dialects() []string { return []string{DialectBugzilla5, DialectBMO, DialectHarmony} }

// Params are settings of the installation. The zero value is how the recorded server was set.
type Params struct {
	// NoInsiderGroup switches the insiders' group off: then no user sees private attachments by id.
	NoInsiderGroup bool
	// MaxAttachmentSize is in KB; 0 means 1000.
	MaxAttachmentSize int
}

// defaultMaxAttachmentSize is the recorded server's maxattachmentsize in KB.
const defaultMaxAttachmentSize = 1000

// Options configure a server. The zero value is a Bugzilla 5.2 with the fixture.
type Options struct {
	Seed    Seed
	Dialect string
	Version string
	Quirks  []Quirk
	Faults  []Fault
	Now     func() time.Time
	Params  Params
	// Product adds a product of that name with nothing in it, by which a tracker can be told from others.
	Product string
	// Users adds so many users who may edit bugs, each with the key that UserKey gives.
	Users int
	// URLBase is the address that the tracker takes for its own. Requests for another host are redirected to it; with https,
	// requests without "X-Forwarded-Proto: https" get an error. Empty means any host.
	URLBase string
	// RateLimit is how many anonymous reads of one kind an address may make in a minute; 0 means no limits. With a limit,
	// an address may also send 5 bad keys in a minute. An address above a limit is blocked for an hour.
	RateLimit int
	// Follows makes the server share the data of another one. Seed, Now, Product and Users are then those of the other;
	// everything else, journal and counts too, is the server's own.
	Follows *Server
}

// Server is one reference tracker. It implements http.Handler; http.ServeMux must not stand before it, because that redirects.
type Server struct {
	options Options
	quirks  atomic.Pointer[[]Quirk]
	store   *store
	// wrote is when a write was last made here; only kept by followers.
	wrote   atomic.Pointer[time.Time]
	journal journal
	counts  counter
	faults  faultList
	rates   rates
	done    chan struct{}
	close   sync.Once
}

// New makes a server with its seed in place.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{options: o, done: make(chan struct{})}
	s.rates.clear()
	s.faults.set(o.Faults)
	if o.Follows != nil {
		s.store = o.Follows.store
		s.SetQuirks(o.Quirks)
		return s
	}
	s.store = &store{now: o.Now}
	s.SetQuirks(o.Quirks)
	s.Reset()
	return s
}

func (o Options) withDefaults() Options {
	if o.Seed == "" {
		o.Seed = SeedFixture
	}
	if o.Dialect == "" {
		o.Dialect = DialectBugzilla5
	}
	if o.Version == "" {
		o.Version = map[string]string{DialectBMO: "20260820.1", DialectHarmony: "20200805.1"}[o.Dialect]
	}
	if o.Version == "" {
		o.Version = "5.2+"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Params.MaxAttachmentSize == 0 {
		o.Params.MaxAttachmentSize = defaultMaxAttachmentSize
	}
	return o
}

// Reset puts the seed back, for all servers that share the data, and empties the server's own journal and rate limits.
// Counts, faults and quirks stay.
func (s *Server) Reset() {
	s.store.replace(s.seed())
	s.journal.clear()
	s.rates.clear()
}

// Close ends answers that hang or drip on purpose. The listener is the caller's.
func (s *Server) Close() error {
	s.close.Do(func() { close(s.done) })
	return nil
}

// Journal lists the executed writes, oldest first.
func (s *Server) Journal() []JournalEntry { return s.journal.list() }

// Requests counts the requests since the start by operation.
func (s *Server) Requests() map[string]int { return s.counts.list() }

// SetFaults replaces the faults.
func (s *Server) SetFaults(faults []Fault) { s.faults.set(faults) }

// SetQuirks replaces the quirks.
func (s *Server) SetQuirks(quirks []Quirk) {
	own := slices.Clone(quirks)
	s.quirks.Store(&own)
	if s.has(QuirkLag) {
		s.store.remember()
	}
}

func (s *Server) bmo() bool     { return s.options.Dialect == DialectBMO }
func (s *Server) harmony() bool { return s.options.Dialect == DialectHarmony }

// mojolicious reports whether the tracker is BMO or Harmony, which share their web framework.
func (s *Server) mojolicious() bool { return s.bmo() || s.harmony() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.ownEndpoint(w, r) {
		return
	}
	if page := s.guard(r); page != nil {
		s.counts.add("page")
		s.send(w, r, page)
		return
	}
	plan := s.plan(r)
	s.counts.add(plan.op)
	s.deliver(w, r, plan)
}
