package journal_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// scene is a journal between two reference trackers that begin with the same data.
type scene struct {
	store    *state.Store
	dsn      string
	main     *flaky
	next     *flaky
	settings journal.Settings
	key      string
	clock    atomic.Pointer[time.Time] // of the trackers, nil for that of the machine
	log      process.Output            // of all journals
}

func set(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{dsn: "sqlite:" + filepath.Join(dir, "state.db"), key: tracker.FixtureKeys()["admin"]}
	s.main, s.next = s.serve(t), s.serve(t)
	s.store = s.open(t)
	keys, err := journal.NewKeys([]byte("the first key of the journal"))
	must(t, err)
	s.settings = journal.Settings{
		Trackers: map[string]upstream.Tracker{"main": s.main, "next": s.next}, Keys: keys,
		Section: journal.Section{Spool: filepath.Join(dir, "spool"), MaxInline: 1 << 10, Keep: time.Hour, MaxFailures: 3, Workers: 4},
		Timeout: 2 * time.Second, Settle: 100 * time.Millisecond, Split: jsonblob.SplitOptions{Dir: dir},
		Caller: func(_, label string, _ *upstream.Caller) (upstream.Caller, bool, bool) {
			return s.caller(), label == "robot", true
		},
		Comments: func(ctx context.Context, tracker string, caller upstream.Caller, attachment int64) (map[int64]upstream.Comment, error) {
			return s.settings.Trackers[tracker].(*flaky).Tracker.(*bugzilla.Client).Comments(ctx, caller, attachment)
		},
	}
	must(t, os.Mkdir(s.settings.Spool, 0o700))
	return s
}

func (s *scene) caller() upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: s.key}}
}

// open opens the store once more, as another process does.
func (s *scene) open(t *testing.T) *state.Store {
	t.Helper()
	store, err := state.Open(t.Context(), s.dsn)
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// start starts a journal until the test is over.
func (s *scene) start(t *testing.T) *journal.Journal {
	t.Helper()
	j := s.journal(s.store)
	t.Cleanup(j.Close)
	return j
}

// journal starts a journal, which the caller closes.
func (s *scene) journal(store *state.Store) *journal.Journal {
	return journal.New(journal.Options{Store: store, Settings: s.settings, Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Observe: func(journal.Status) {}})
}

// relayed starts a journal whose PostgreSQL is behind a relay.
func (s *scene) relayed(t *testing.T) (*journal.Journal, *process.Relay) {
	t.Helper()
	s.dsn = process.Postgres(t)
	s.store = s.open(t)
	dsn, relay := process.RelayDatabase(t, s.dsn)
	s.dsn = dsn
	j := s.journal(s.open(t))
	t.Cleanup(j.Close)
	return j, relay
}

// operator changes the journal by hand.
func (s *scene) operator() *journal.Operator {
	return &journal.Operator{Store: s.store, Actor: "tester", Reason: "a test"}
}

func intent(call upstream.Call) journal.Intent {
	i := journal.Intent{Call: call, Target: "main", Receiver: "next", Rule: "all", Caller: "robot"}
	if call.CreateAttachment != nil {
		i.Bugs = call.CreateAttachment.Bugs
	}
	return i
}

// begin journals an intent.
func begin(t *testing.T, j *journal.Journal, intent journal.Intent) journal.Done {
	t.Helper()
	done, err := j.Begin(t.Context(), intent)
	must(t, err)
	return done
}

// make makes a journalled write at the main tracker.
func (s *scene) make(t *testing.T, j *journal.Journal, intent journal.Intent) upstream.Response {
	t.Helper()
	done := begin(t, j, intent)
	response := intent.Call.Make(t.Context(), s.main, s.caller())
	done(t.Context(), response)
	return response
}

// write makes a journalled write that has to succeed, and returns the text of its response.
func (s *scene) write(t *testing.T, j *journal.Journal, call upstream.Call) string {
	t.Helper()
	response := s.make(t, j, intent(call))
	must(t, response.Err)
	return process.Text(t, response.Document, nil)
}

func attach(t *testing.T, bugs []string, summary, content string) upstream.Call {
	t.Helper()
	blob, err := jsonblob.BlobFromEncoded(base64.StdEncoding.EncodeToString([]byte(content)))
	must(t, err)
	return upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{
		Bugs: bugs, Data: blob, FileName: new("file.txt"), Summary: &summary, ContentType: new("text/plain"),
	}}
}

func rename(id int64, summary string) upstream.Call {
	return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Summary: &summary}}
}

// shown is an attachment as tests compare it.
type shown struct {
	ID       int64  `json:"id"`
	FileName string `json:"file_name"`
	Summary  string `json:"summary"`
	Data     string `json:"data"`
	Flags    []struct {
		ID     int64  `json:"id"`
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"flags"`
}

// attachments lists those of a bug at a tracker.
func (s *scene) attachments(t *testing.T, at upstream.Tracker, bug string) (all []shown) {
	t.Helper()
	reply, err := at.Do(t.Context(), s.caller(), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{bug}}})
	must(t, err)
	var text strings.Builder
	_, err = reply.WriteTo(&text)
	must(t, err)
	must(t, reply.Close())
	var found struct {
		Bugs map[string][]shown `json:"bugs"`
	}
	must(t, json.Unmarshal([]byte(text.String()), &found))
	for _, list := range found.Bugs {
		all = append(all, list...)
	}
	return all
}

// named counts the attachments of a bug with a summary.
func (s *scene) named(t *testing.T, at upstream.Tracker, bug, summary string) (n int) {
	t.Helper()
	for _, one := range s.attachments(t, at, bug) {
		if one.Summary == summary {
			n++
		}
	}
	return n
}

// drained waits until all entries have one of the statuses, and returns them.
func (s *scene) drained(t *testing.T, statuses ...state.JournalStatus) (all []state.JournalEntry) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			for _, e := range all {
				t.Logf("entry %d of %s (%s) is %s: %s", e.Seq, e.Lane, e.Operation, e.Status, e.Reason)
			}
		}
	})
	process.Eventually(t, fmt.Sprintf("all entries are %v", statuses), func() bool {
		var err error
		all, err = s.store.JournalOf(t.Context(), 1000, true)
		must(t, err)
		return !slices.ContainsFunc(all, func(e state.JournalEntry) bool { return !slices.Contains(statuses, e.Status) })
	})
	return all
}

// flaky is a reference tracker whose writes fail as a test says.
type flaky struct {
	upstream.Tracker

	mu sync.Mutex
	// before and after are asked for an error before and after a write is carried out.
	before, after func(upstream.Call) error
	// now and most are how many writes of an object are and were under way at once.
	now  map[string]int
	most int
	// ids are those of attachments that clients know by other ones, nil for none.
	ids *learned
}

// Do implements upstream.Tracker.
func (f *flaky) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (reply mapping.Reply, err error) {
	switch call.Operation {
	case mapping.OpAttachment:
		if id, err := strconv.ParseInt(call.Attachments.Attachments[0], 10, 64); f.ids != nil && err == nil {
			request := *call.Attachments
			request.Attachments = []string{fmt.Sprint(f.native("attachment", id))}
			call.Attachments = &request
		}
	case mapping.OpUpdateAttachments:
		defer f.enter(fmt.Sprint(call.UpdateAttachments.IDs))()
		if f.ids != nil {
			request := *call.UpdateAttachments
			request.IDs, request.Flags = []int64{f.native("attachment", request.IDs[0])}, slices.Clone(request.Flags)
			for i, flag := range request.Flags {
				if flag.ID != nil {
					request.Flags[i].ID = new(f.native("flag", *flag.ID))
				}
			}
			call.UpdateAttachments = &request
		}
	}
	if call.Operation.IsWrite() {
		err = f.around(call, func() error {
			reply, err = f.Tracker.Do(ctx, caller, call)
			return err
		})
		return reply, err
	}
	return f.Tracker.Do(ctx, caller, call)
}

func (s *scene) serve(t *testing.T) *flaky {
	t.Helper()
	now := func() time.Time {
		if at := s.clock.Load(); at != nil {
			return *at
		}
		return time.Now()
	}
	client := process.Client(t, process.Listen(t, process.Reference(t, tracker.Options{Now: now})), nil, "bugzilla-5")
	return &flaky{Tracker: client, now: map[string]int{}}
}

// native is the id of an object at the tracker.
func (f *flaky) native(kind string, client int64) int64 {
	f.ids.mu.Lock()
	defer f.ids.mu.Unlock()
	if native, ok := f.ids.all[fmt.Sprintf("%s %d at next", kind, client)]; ok {
		return native
	}
	return client
}

// fail sets what is asked for errors.
func (f *flaky) fail(before, after func(upstream.Call) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// enter counts a write of an object.
func (f *flaky) enter(object string) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[object]++
	f.most = max(f.most, f.now[object])
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now[object]--
	}
}

func (f *flaky) around(call upstream.Call, do func() error) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(call); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && after != nil {
		err = after(call)
	}
	return err
}

var must = process.Must
