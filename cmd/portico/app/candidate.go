package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"portico/cmd/portico/config"
	"portico/proxy/admin/pages/transition"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
	"portico/upstream/transport"
)

// openCandidate builds what a second tracker needs: the store, its own components, the comparison, the journal and the switchover.
func (rt *Runtime) openCandidate(ctx context.Context) error {
	if err := rt.openStore(ctx); err != nil {
		return err
	}
	if err := rt.openTracker(rt.cfg.Candidate); err != nil {
		return err
	}
	if len(rt.caches) == 2 { // a write to one tracker may reach the other in another way
		rt.caches[0].CopiedTo(rt.cfg.Switchover.Follow, rt.caches[1])
		rt.caches[1].CopiedTo(rt.cfg.Switchover.Follow, rt.caches[0])
	}
	if rt.dry != nil {
		return rt.openSwitchover(ctx)
	}
	rt.openIDs(rt.cfg.Primary, rt.cfg.Candidate)
	if err := rt.openCanary(); err != nil {
		return err
	}
	former := rt.journal
	applySettings, err := rt.openJournal()
	if err == nil {
		err = rt.openSwitchover(ctx)
	}
	switch {
	case err == nil:
		rt.recorded = rt.journal
		applySettings() // last, since a build that fails changes nothing
	case rt.journal != former:
		rt.journal.Close()
		rt.journal = former
	}
	return err
}

// openIDs makes ids and names of both trackers one space, if that is configured. old and candidate are the ones that the store of ids speaks of;
// only one of them may be in use.
func (rt *Runtime) openIDs(old, candidate string) {
	if len(rt.cfg.Switchover.IDs) == 0 {
		return
	}
	options := idmap.Options{Old: old, New: candidate, Store: rt.store, Settings: rt.cfg.Switchover.Settings, Split: rt.replySplit()}
	if rt.cfg.Switchover.Journal.Keys != nil {
		options.Copying = rt.store.JournalCopying
	}
	rt.ids = idmap.New(options)
	for name, t := range rt.trackers {
		t.target.Check = func(ctx context.Context, path string, query func(name string) []string, isOperation bool) error {
			return rt.ids.CheckPassing(ctx, name, path, query, isOperation)
		}
	}
}

// openLastIDs translates the ids of the only tracker that is left of two: an object keeps the id that clients were shown first.
func (rt *Runtime) openLastIDs(ctx context.Context) error {
	if err := rt.openStore(ctx); err != nil {
		return err
	}
	last, err := rt.store.CurrentRevision(ctx)
	if err != nil {
		return err
	}
	old, candidate := switchover.TrackersOf(last)
	if old != rt.cfg.Primary && candidate != rt.cfg.Primary {
		return fmt.Errorf("switchover.ids: the state knows the trackers %q and %q, and not %q: a tracker keeps its name when the other one is taken out",
			old, candidate, rt.cfg.Primary)
	}
	rt.openIDs(old, candidate)
	return nil
}

// openCanary builds the comparison. It shares nothing with what clients wait for: each tracker gets a second client with connections,
// limits and breakers of its own.
func (rt *Runtime) openCanary() error {
	trackers := map[string]canary.Tracker{}
	for name, t := range rt.trackers {
		stack, err := rt.openShadow(t)
		if err != nil {
			return err
		}
		trackers[name] = canary.Tracker{
			Tracker: rt.ids.Tracker(name, t.shadow), Caller: rt.comparisonKeys(t.keys).ForComparison,
			Plan: t.shadow.ShowPlan, Address: t.shadow.ReadAddress, Refuses: stack.Reads.Refuses,
		}
	}
	rt.Canary = canary.New(canary.Options{
		Settings: rt.cfg.Canary.Settings, Split: rt.replySplit(),
		Trackers: trackers, Store: rt.store, Reference: rt.cfg.Primary, Candidate: rt.cfg.Candidate,
		CallerName: rt.callers.Name, Locate: rt.ids.Locator(rt.cfg.Primary, rt.trackers[rt.cfg.Primary].shadow),
		Logger: rt.logger, Observer: rt.metrics,
	})
	rt.onClose(func() {
		if err := rt.Canary.Close(); err != nil {
			rt.logger.Warn("the last findings could not be stored", "cause", err)
		}
	})
	return nil
}

// openShadow builds the client of a tracker for comparisons, and returns its connections.
func (rt *Runtime) openShadow(t *tracker) (*transport.Stack, error) {
	workers, label := rt.cfg.Canary.Workers, "shadow:"+t.name
	options := transport.Options{
		Base:  transport.BaseOptions{MaxIdleConns: workers, HeaderTimeout: rt.cfg.Canary.Timeout},
		Limit: transport.LimitOptions{Slots: 2 * workers, ReserveWrites: -1, Queue: 2 * workers},
		Break: transport.BreakOptions{Unanswered: min(workers, 5)}, // no more calls than workers end while the tracker hangs
	}
	if t.name == rt.cfg.Candidate {
		options.Tries = 1 // a retry would hide a failure of the candidate
	}
	stack, err := rt.openStack(t, label, options)
	if err == nil {
		t.shadow, err = rt.newClient(t, label, stack, nil) // package canary has the keys
	}
	return stack, err
}

// openJournal makes the journal at the first call where the configuration has a key for it. applySettings gives one that was made before its new
// settings.
func (rt *Runtime) openJournal() (applySettings func(), err error) {
	cfg := &rt.cfg.Switchover.Journal
	if cfg.Keys == nil {
		return func() {}, nil
	}
	if err := os.MkdirAll(cfg.Spool, 0o700); err != nil {
		return nil, fmt.Errorf("switchover.journal.spool: %w", err)
	}
	settings := journal.Settings{
		Section: cfg.Section, Trackers: map[string]upstream.Tracker{}, Caller: rt.journalCaller(), Keys: cfg.Keys,
		Timeout: rt.maxCallTime(), Settle: 2 * rt.maxCallTime(), Split: rt.replySplit(), Comments: rt.comments,
	}
	for name, t := range rt.trackers {
		settings.Trackers[name] = t.front()
		if rt.ids != nil { // copies have the ids of objects of their own until they have a pair
			settings.Trackers[name] = rt.ids.ForCopies().Tracker(name, t.front())
			settings.Pairs = rt.ids
		}
	}
	if rt.journal == nil {
		rt.journal = journal.New(journal.Options{Store: rt.store, Settings: settings, Logger: rt.logger, Observe: rt.metrics.Journal})
	}
	return func() { rt.journal.Set(settings) }, nil
}

// journalCaller returns the caller that a tracker is shown for a write of a caller with a name: as which it was made, while that is known and the
// tracker would know it, else its key there, else that of a service.
func (rt *Runtime) journalCaller() func(tracker, name string, shown *upstream.Caller) (caller upstream.Caller, own, ok bool) {
	cfg := &rt.cfg.Switchover.Journal
	services := map[string]string{rt.cfg.Primary: cfg.PrimaryServiceKey.Text(), rt.cfg.Candidate: cfg.ServiceKey.Text()}
	return func(tracker, name string, shown *upstream.Caller) (caller upstream.Caller, own, ok bool) {
		held := rt.trackers[tracker].keys
		caller.Mapped = true
		if shown != nil && held.Forwards() {
			caller.Credentials = ownCredentials(shown.Credentials, held.RefuseLogins)
		}
		if own = caller.Credentials.Complete(); own {
			return caller, true, true
		}
		key := rt.cfg.KeyAt(name, tracker).Text()
		caller.Credentials = upstream.Credentials{APIKey: cmp.Or(key, held.ServiceKey, services[tracker])}
		return caller, key != "", caller.Credentials.APIKey != ""
	}
}

// ownCredentials are the credentials of a caller that the other tracker may know too. A token, a cookie or a scheme of a gateway belongs to
// the tracker that issued it.
func ownCredentials(have upstream.Credentials, keysOnly bool) upstream.Credentials {
	if have.APIKey != "" || keysOnly {
		return upstream.Credentials{APIKey: have.APIKey}
	}
	return upstream.Credentials{Login: have.Login, Password: have.Password}
}

// comments reads the comments on an attachment that clients know by an id.
func (rt *Runtime) comments(ctx context.Context, tracker string, caller upstream.Caller, attachment int64) (_ map[int64]upstream.Comment, err error) {
	if attachment, err = rt.ids.Native(ctx, tracker, idmap.Attachment, attachment); err != nil {
		return nil, err
	}
	return rt.trackers[tracker].client.Comments(ctx, caller, attachment)
}

// openSwitchover makes the switchover at the first call. Later ones give it new settings.
func (rt *Runtime) openSwitchover(ctx context.Context) (err error) {
	metrics := rt.metrics
	settings := switchover.Settings{
		Table: rt.cfg.Switchover.Table(), Trackers: map[string]upstream.Tracker{}, Locate: map[string]switchover.Locator{},
		CallerNames: config.SortedKeys(rt.cfg.Callers), Caller: rt.callers.Name, Shadow: rt.Canary, Follow: rt.cfg.Switchover.Follow,
		UnknownOutcome: max(time.Minute, 4*rt.maxCallTime()), // as for the cache
		Split:          rt.replySplit(), Logger: rt.logger,
		Observer: switchover.Observer{
			Routed: metrics.Routed, Refused: metrics.RefusedWrite, LookedUp: metrics.Lookup, Changed: metrics.Phases,
		},
	}
	if rt.journal != nil {
		settings.Journal = rt.journal
	}
	for name, t := range rt.trackers {
		settings.Trackers[name], settings.Locate[name] = rt.ids.Tracker(name, t.front()), rt.ids.Locator(name, t.client)
	}
	if rt.dry != nil {
		rt.dry.Rules.Replace(&settings, rt.dry.table)
	}
	if rt.switchover == nil {
		rt.switchover, err = switchover.New(ctx, switchover.Options{Old: rt.cfg.Primary, New: rt.cfg.Candidate, Store: rt.store, Settings: settings})
	} else {
		err = rt.switchover.Set(ctx, settings)
	}
	if err != nil {
		return fmt.Errorf("set up the switchover: %w", err)
	}
	return nil
}

// maxMissing bounds the callers that are remembered for each tracker.
const maxMissing = 100

// missingKeys remembers callers that had no key at a tracker, by name or by user agent, never by credential.
type missingKeys struct {
	mu   sync.Mutex
	seen map[string][]string // by tracker
}

// note remembers a caller.
func (m *missingKeys) note(tracker, name string, caller upstream.Caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	label := cmp.Or(name, "a key without a name (user agent "+cmp.Or(caller.UserAgent, "unknown")+")")
	if seen := m.seen[tracker]; len(seen) < maxMissing && !slices.Contains(seen, label) {
		m.seen[tracker] = append(seen, label)
	}
}

// list returns the callers of one tracker.
func (m *missingKeys) list(tracker string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen[tracker])
}

// newGate joins the gate of the switchover with the comparison and both trackers.
func (rt *Runtime) newGate() *transition.Gate {
	candidate := rt.trackers[rt.cfg.Candidate]
	g := &transition.Gate{
		Switchover: rt.switchover, Report: rt.Canary.Report, Callers: map[string]upstream.Caller{}, Missing: rt.missing.list,
		OtherKeys: candidate.keys.Forwards() && !switchover.Keys{Credentials: rt.cfg.Canary.Credentials}.Forwards(),
		Probe: func(ctx context.Context, tracker string, caller upstream.Caller) error {
			_, _, err := rt.trackers[tracker].client.FlagTypePlaces(ctx, caller, nil, nil)
			return err
		},
		Journal: func(ctx context.Context) (*journal.Status, error) {
			if rt.recorded == nil {
				return nil, nil
			}
			status, err := rt.recorded.Status(ctx)
			return &status, err
		},
	}
	if rt.ids != nil {
		g.IDProblem = rt.ids.IDProblem
	}
	for _, named := range rt.callers {
		key := cmp.Or(named.Keys[rt.cfg.Primary], named.Keys[rt.cfg.Candidate])
		g.Callers[named.Name] = upstream.Caller{Credentials: upstream.Credentials{APIKey: key}, UserAgent: "Portico"}
	}
	return g
}
