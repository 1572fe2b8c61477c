package switchover

import (
	"context"
	"database/sql" //nolint:depguard // only to be in the way of the store, as another process may be
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/state"
)

// fake is a tracker that remembers who wrote what, and shows it in its answers.
type fake struct {
	upstream.Tracker
	name string

	mu    sync.Mutex
	calls []upstream.Call
	next  int64
	fail  error
	// hold, when set, is waited for by writes.
	hold chan struct{}
	// begun is told of each write that waits.
	begun chan struct{}
}

func (f *fake) seen(call upstream.Call) (int64, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.next++
	next, failed, hold := f.next, f.fail, f.hold
	f.mu.Unlock()
	if call.Operation.IsWrite() && hold != nil {
		f.begun <- struct{}{}
		<-hold
	}
	return next, failed
}

func (f *fake) taken() []upstream.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fake) failing(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// says makes a document that names the tracker.
func (f *fake) says(format string, args ...any) *mapping.Document {
	return mapping.NewDocument(fmt.Appendf(nil, format, args...))
}

// Do implements upstream.Tracker.
func (f *fake) Do(_ context.Context, _ upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	id, err := f.seen(call)
	if err != nil {
		return mapping.Reply{}, err
	}
	switch call.Operation {
	case mapping.OpFlagTypes:
		return mapping.Reply{Document: f.says(`{"by":%q}`, f.name), Cache: &mapping.CacheInfo{Hit: true}}, nil
	case mapping.OpCreateFlagType:
		return mapping.Reply{Document: f.says(`{"id":%d,"flag_id":%d}`, id, id)}, nil
	case mapping.OpUpdateFlagTypes:
		return mapping.Reply{Document: f.says(`{"flagtypes":[]}`)}, nil
	case mapping.OpCreateAttachment:
		return mapping.Reply{Document: f.says(`{"ids":[%d]}`, 1000+id)}, nil
	case mapping.OpUpdateAttachments:
		return mapping.Reply{Document: f.says(`{"attachments":[]}`)}, nil
	}
	var bugs, attachments []string
	for _, bug := range call.Attachments.Bugs {
		bugs = append(bugs, fmt.Sprintf(`%q:[{"by":%q}]`, bug, f.name))
	}
	for _, id := range call.Attachments.Attachments {
		attachments = append(attachments, fmt.Sprintf(`%q:{"by":%q}`, id, f.name))
	}
	return mapping.Reply{Document: f.says(`{"bugs":{%s},"attachments":{%s}}`, strings.Join(bugs, ","), strings.Join(attachments, ","))}, nil
}

// atlas is a locator over what a test says: bugs 1 to 9 are in product P1 and so
// on to P9, component C, attachment 10·b+n hangs on bug b; bug 77 is hidden, 88
// cannot be asked for, for 66 the tracker fails, and others do not exist. The alias of bug b is "bug-b".
type atlas struct {
	mu    sync.Mutex
	asked []string
	types map[int64]mapping.Scopes
	sees  []string // the products that the callers see
	// extra are bugs that only this one knows, hides is one that only this one hides.
	extra map[string]mapping.Place
	hides string
}

var (
	errDown   = &mapping.Error{Code: 200502, Status: 502, Message: "away", Reason: mapping.ReasonUnreachable}
	errBroken = &mapping.Error{Code: 100500, Status: 500, Message: "broken"} // by the tracker's own account
)

func (a *atlas) ask(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
}

func (a *atlas) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func (a *atlas) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	a.ask("bug %s", ref)
	if place, ok := a.extra[ref]; ok {
		return place, nil
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(ref, "bug-"), 10, 64)
	switch {
	case err != nil:
		return mapping.Place{}, &mapping.Error{Code: 100, Status: 400, Message: "no alias"}
	case id == 77 || ref == a.hides:
		return mapping.Place{}, &mapping.Error{Code: 102, Status: 401, Message: "hidden"}
	case id == 88:
		return mapping.Place{}, errDown
	case id == 66:
		return mapping.Place{}, errBroken
	case id < 1 || id > 9:
		return mapping.Place{}, &mapping.Error{Code: 101, Status: 404, Message: "no bug"}
	default:
		return mapping.Place{Bug: id, Product: fmt.Sprintf("P%d", id), Component: "C"}, nil
	}
}

func (a *atlas) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	a.ask("attachment %d", id)
	switch {
	case id >= 770 && id < 780:
		return 0, &mapping.Error{Code: 304, Status: 401, Message: "private"}
	case id >= 880 && id < 890:
		return 0, errDown
	case id >= 10 && id < 100:
		return id / 10, nil
	default:
		return 0, nil
	}
}

func (a *atlas) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	a.ask("types %v %v", ids, names)
	var all []mapping.Scopes
	for _, id := range ids {
		all = append(all, a.types[id])
	}
	for range names {
		all = append(all, nil)
	}
	return a.sees, all, nil
}

// blind is a shadow that compares nothing.
type blind struct{}

func (blind) Wrote(upstream.Call) {}

func (blind) Answered(_ context.Context, _ upstream.Caller, _ upstream.Call, _ upstream.Sides, answer upstream.Response) *mapping.Document {
	return answer.Document
}

// disturbed is a store in a file, and a connection by which a test gets in its way, as another process may.
type disturbed struct {
	*state.Store
	t    testing.TB
	file string
	db   *sql.DB
}

func openDisturbed(t testing.TB) *disturbed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20000)")
	must(t, err)
	d := &disturbed{openStore(t, file), t, file, db}
	t.Cleanup(func() { _ = db.Close() })
	return d
}

func openStore(t testing.TB, file string) *state.Store {
	t.Helper()
	store, err := state.Open(t.Context(), "sqlite:"+file)
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (d *disturbed) exec(query string, args ...any) {
	d.t.Helper()
	if _, err := d.db.ExecContext(context.WithoutCancel(d.t.Context()), query, args...); err != nil {
		d.t.Error(err)
	}
}

// lock keeps all others from writing. They can read all the while.
func (d *disturbed) lock() (unlock func()) {
	d.t.Helper()
	ctx := context.WithoutCancel(d.t.Context())
	holder, err := d.db.Conn(ctx)
	if err == nil {
		_, err = holder.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return func() {
		if _, err := holder.ExecContext(ctx, "ROLLBACK"); err != nil {
			d.t.Error(err)
		}
		_ = holder.Close()
	}
}

// away has the store fail for rules and heartbeats until it is back.
func (d *disturbed) away() (back func()) {
	d.t.Helper()
	rename := func(from, to string) {
		for _, table := range []string{"portico_revisions", "portico_leases"} {
			d.exec("ALTER TABLE " + table + from + " RENAME TO " + table + to)
		}
	}
	rename("", "_away")
	return func() { rename("_away", "") }
}

// uncopied adds a write to the journal that a tracker has still to get.
func (d *disturbed) uncopied(receiver string) {
	d.t.Helper()
	d.exec(addEntry+" VALUES (?, 'attachment.create', 'x', ?, 'rest', '', 'pending', 0)", "bug for-"+receiver, receiver)
}

const addEntry = "INSERT INTO portico_journal (lane, operation, target, receiver, rule, caller, status, begun_at)"

func (d *disturbed) pause(paused bool) {
	d.t.Helper()
	d.exec("UPDATE portico_journal_pause SET paused = ?", paused)
}

// unobserved is an Observer of nothing.
var unobserved = Observer{
	Routed: func(mapping.Operation, string, string) {}, Refused: func(mapping.Operation) {}, LookedUp: func(string, string) {}, Changed: func(Status) {},
}

// settingsOver are settings over two trackers. No caller has a name.
func settingsOver(old, next upstream.Tracker, from, beyond Locator, rules ...Rule) Settings {
	return Settings{
		Shadow: blind{}, Logger: slog.New(slog.DiscardHandler), Observer: unobserved, Caller: func(upstream.Caller) string { return "" },
		Trackers: map[string]upstream.Tracker{"old": old, "new": next}, Locate: map[string]Locator{"old": from, "new": beyond},
		Table: Table{Rules: rules}, Follow: time.Minute, UnknownOutcome: time.Minute,
	}
}

// openUntilEnd opens a switchover until the test ends. It asks the store for changes of others as often as poll says.
func openUntilEnd(t testing.TB, options Options, now func() time.Time, poll time.Duration) *Switchover {
	t.Helper()
	opened, err := open(t.Context(), options, timing{
		now: now, poll: poll, store: 10 * time.Second, kill: 200 * time.Millisecond,
		lease: 1000 * time.Hour, hold: 10 * time.Second, barrier: 10 * time.Second,
	})
	must(t, err)
	t.Cleanup(opened.Close)
	return opened
}

// bench is a switchover over two fakes, whose time a test moves.
type bench struct {
	*Switchover
	options  Options
	old, new *fake
	atlas    *atlas
	beyond   *atlas // of the new tracker
	clock    *clock
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func openBench(t testing.TB, rules ...Rule) *bench {
	t.Helper()
	return openBenchOver(t, openStore(t, ":memory:"), time.Hour, rules...)
}

func openBenchOver(t testing.TB, store *state.Store, poll time.Duration, rules ...Rule) *bench {
	t.Helper()
	b := &bench{
		old: &fake{name: "old"}, new: &fake{name: "new"},
		clock: &clock{at: time.Unix(1_800_000_000, 0)},
		atlas: &atlas{sees: []string{"P1", "P2", "Elsewhere"}, types: map[int64]mapping.Scopes{
			1: {{Product: "P1"}}, 2: {{Product: "P2"}}, 3: {{Product: "P1"}, {Product: "P2"}}, 4: {{Product: "__Any__"}},
			5: {{Product: "P1", Components: []string{"C"}}}, 6: {{Product: "P1", Components: []string{"Other"}}}, 7: {{Product: "Elsewhere"}},
		}},
	}
	b.beyond = &atlas{types: maps.Clone(b.atlas.types), sees: b.atlas.sees}
	b.options = Options{Old: "old", New: "new", Store: store, Settings: settingsOver(b.old, b.new, b.atlas, b.beyond, rules...)}
	b.options.Settings.CallerNames = []string{"ci", "bot"}
	b.options.Settings.Caller = func(c upstream.Caller) string { return strings.TrimPrefix(c.Credentials.APIKey, "key-") }
	b.Switchover = openUntilEnd(t, b.options, b.clock.now, poll)
	return b
}

// set replaces the settings, as a reload does.
func (b *bench) set(t testing.TB, change func(*Settings)) {
	t.Helper()
	settings := b.settings
	change(&settings)
	must(t, b.Set(t.Context(), settings))
}

// configure replaces the configured rules.
func (b *bench) configure(t testing.TB, rules ...Rule) {
	t.Helper()
	b.set(t, func(s *Settings) { s.Table = Table{Rules: rules} })
}

// decision is where the rules send a call, with nothing sent but lookups.
type decision struct {
	Rule, Tracker, Compared string
	Index                   int
}

// explain decides a call without making it.
func (s *Switchover) explain(ctx context.Context, caller upstream.Caller, call upstream.Call) (decision, error) {
	info := &callInfo{ruleSet: s.rules.Load(), caller: &caller, operation: call.Operation}
	var made []route
	var err error
	switch {
	case call.FlagTypes != nil:
		made, err = s.decideAll(ctx, info, []object{{kind: typesObject, product: call.FlagTypes.Product, component: call.FlagTypes.Component}})
		_ = s.followOwnWrites(ctx, info, made, false)
	case call.Attachments != nil:
		var parts []part
		if parts, err = s.parts(ctx, info, *call.Attachments); err == nil {
			made = parts[0].routes
		}
	default:
		made, err = s.decideWrite(ctx, info, &call)
	}
	if err != nil {
		return decision{}, err
	}
	d := decision{Rule: info.source.Rules[made[0].rule].Name, Tracker: s.names[made[0].side], Index: made[0].rule}
	if !slices.ContainsFunc(made, func(one route) bool { return !one.phase.Compares() }) {
		d.Compared = s.names[made[0].side.other()]
	}
	return d, nil
}

// try changes the rules that are in force.
func (b *bench) try(ctx context.Context, rules ...Rule) error {
	return b.Change(ctx, b.Status().Version, Table{Rules: rules}, "an operator", "a test")
}

// change is try for what must succeed.
func (b *bench) change(t testing.TB, rules ...Rule) {
	t.Helper()
	must(t, b.try(t.Context(), rules...))
}

func caller(key string) upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: key}, Address: "192.0.2.1"}
}

// always is a rule without conditions.
func always(reads, writes Phase) Rule { return Rule{Name: "rest", Reads: reads, Writes: writes} }

// moved is a rule whose calls go to the new tracker.
func moved(rule Rule) Rule {
	rule.Name, rule.Reads, rule.Writes = "moved", PhaseNew, PhaseNew
	return rule
}

func wantRefused(t testing.TB, err error, parts ...string) {
	t.Helper()
	said, ok := errors.AsType[*mapping.Error](err)
	if !ok || said.Reason != mapping.ReasonSwitchover || said.Code != mapping.CodeBadParameter || said.Status != 400 {
		t.Fatalf("got %v, want a refusal of the switchover", err)
	}
	for _, part := range parts {
		if !strings.Contains(said.Message, part) {
			t.Errorf("%q does not name %q", said.Message, part)
		}
	}
}

var must = process.Must
