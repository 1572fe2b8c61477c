package idmap_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/state"
	"portico/upstream/switchover/idmap"
)

// inner is a tracker that keeps the last call and responds with a document of the test.
type inner struct {
	upstream.Tracker // of what no test calls
	call             upstream.Call
	reply            func() *mapping.Document
	err              error
}

// Do implements upstream.Tracker.
func (i *inner) Do(_ context.Context, _ upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	i.call = call
	if i.err != nil {
		return mapping.Reply{}, i.err
	}
	return mapping.Reply{Document: i.reply()}, nil
}

func (i *inner) Peek(ctx context.Context, caller upstream.Caller, r mapping.FlagTypesRequest) (mapping.Reply, error) {
	return i.Do(ctx, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &r})
}

// text makes replies of a text.
func text(reply string) func() *mapping.Document {
	return func() *mapping.Document { return mapping.NewDocument([]byte(reply)) }
}

// stream makes replies that arrive in pieces.
func stream(reply string) func() *mapping.Document {
	return func() *mapping.Document {
		head := min(len(reply), 10)
		return mapping.NewStream([]byte(reply[:head]), io.NopCloser(strings.NewReader(reply[head:])), int64(len(reply)))
	}
}

// openStore opens a real store.
func openStore(t testing.TB) *state.Store {
	t.Helper()
	s, err := state.Open(context.Background(), "sqlite:"+filepath.Join(t.TempDir(), "ids.db"))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newMap makes a map with the default rules, and a table for bugs.
func newMap(t testing.TB, names idmap.Names) *idmap.Map {
	t.Helper()
	settings := idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Bug: {Mode: idmap.Table}, idmap.Group: {Mode: idmap.Table}}, Names: names}
	if problems := settings.Problems(true); len(problems) > 0 {
		t.Fatal(problems)
	}
	store := openStore(t)
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: settings, Split: jsonblob.SplitOptions{Dir: t.TempDir()}})
	stored(m, store)
	return m
}

// stored notes the store of a map, for pair.
func stored(m *idmap.Map, store *state.Store) { stores.Store(m, store) }

// stores are those of maps.
var stores sync.Map

// add makes a pair and adds it, as the journal does.
func add(m *idmap.Map, store *state.Store, kind idmap.Kind, client int64, side idmap.Side, shown int64) error {
	pair, err := m.Pair(string(kind), client, string(side), shown)
	if err == nil {
		err = store.AddIDs(context.Background(), []state.IDPair{pair})
		m.Added([]state.IDPair{pair})
	}
	return err
}

// pair adds a pair by its native id, with the default offset.
func pair(t testing.TB, m *idmap.Map, kind idmap.Kind, client int64, side idmap.Side, native int64) {
	t.Helper()
	if side == idmap.NewSide {
		native += idmap.DefaultOffset
	}
	store, _ := stores.Load(m)
	must(t, add(m, store.(*state.Store), kind, client, side, native))
}

// refusal is the error that a client would get.
func refusal(t testing.TB, err error) *mapping.Error {
	t.Helper()
	failed, ok := errors.AsType[*mapping.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error for clients", err)
	}
	return failed
}

const offset = idmap.DefaultOffset

var caller upstream.Caller

// locator is a tracker's lookups.
type locator struct {
	bug        string
	attachment int64
	ids        []int64
	names      []string
	place      mapping.Place
	scopes     []mapping.Scopes
	err        error
}

func (l *locator) Bug(_ context.Context, _ upstream.Caller, named string) (mapping.Place, error) {
	l.bug = named
	return l.place, l.err
}

func (l *locator) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	l.attachment = id
	return l.place.Bug, l.err
}

func (l *locator) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	l.ids, l.names = slices.Clone(ids), slices.Clone(names)
	return []string{l.place.Product}, l.scopes, l.err
}

// updating changes attachments, reading reads them.
func updating(ids ...int64) upstream.Call {
	return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}}
}

func reading(ids ...int64) upstream.Call {
	request := &mapping.AttachmentsRequest{}
	for _, id := range ids {
		request.Attachments = append(request.Attachments, strconv.FormatInt(id, 10))
	}
	return upstream.Call{Operation: mapping.OpAttachment, Attachments: request}
}

var must = process.Must
