package switchover

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/upstreamtest"
)

// serve starts a reference tracker and a client of it.
func serve(t testing.TB, options tracker.Options) (*tracker.Server, *bugzilla.Client) {
	t.Helper()
	reference := process.Reference(t, options)
	return reference, process.Client(t, process.Listen(t, reference), nil, "bugzilla-5")
}

// over opens a switchover over two reference trackers, of which the new one
// shares the data of the old one if it follows.
func over(t testing.TB, follows bool, rules ...Rule) (s *Switchover, old, candidate *tracker.Server) {
	t.Helper()
	old, first := serve(t, tracker.Options{})
	behind := tracker.Options{}
	if follows {
		behind.Follows = old
	}
	candidate, second := serve(t, behind)
	settings := settingsOver(first, second, first, second, rules...)
	settings.Split = jsonblob.SplitOptions{Dir: t.TempDir()}
	s = openUntilEnd(t, Options{Old: "old", New: "new", Store: openStore(t, ":memory:"), Settings: settings}, time.Now, time.Second)
	return s, old, candidate
}

// ofAttachmentsOnly leaves flag types out, of which some are in every product.
var ofAttachmentsOnly = mapping.Operations()[3:]

func TestContract(t *testing.T) {
	lists := map[string][]Rule{
		"reads ahead of writes": {always(PhaseNew, PhaseOld)},
		"some of the callers":   {moved(Rule{Percent: new(50.0)}), always(PhaseOld, PhaseOld)},
		"another product":       {moved(Rule{Products: []string{"No Such Product"}, Operations: ofAttachmentsOnly}), always(PhaseOld, PhaseOld)},
		"attachments apart":     {moved(Rule{Products: []string{"TestProduct"}, Operations: ofAttachmentsOnly}), always(PhaseNew, PhaseOld)},
		"odd names":             {{Name: "odd", Products: []string{"Product/With/Slash"}, Reads: PhaseNew, Writes: PhaseOld}, always(PhaseOld, PhaseOld)},
	}
	for _, phase := range Phases() {
		lists[string(phase)] = []Rule{always(phase, phase)}
	}
	keys := tracker.FixtureKeys()
	for name, rules := range lists {
		t.Run(name, func(t *testing.T) {
			upstreamtest.TestTracker(t, func(t *testing.T) upstreamtest.Subject {
				s, _, _ := over(t, len(rules) > 1 || rules[0].Reads != rules[0].Writes, rules...)
				return upstreamtest.Subject{Tracker: s, Keys: keys}
			})
		})
	}
}

// TestASplitReadIsWhatOneTrackerWouldAnswer compares both, with an attachment that
// is too large to be held in memory.
func TestASplitReadIsWhatOneTrackerWouldAnswer(t *testing.T) {
	s, old, candidate := over(t, true, moved(Rule{Bugs: []Range{{5, 5}}}), always(PhaseOld, PhaseOld))
	dev := caller(tracker.FixtureKeys()["dev"])
	large := mapping.AttachmentCreate{
		Bugs: []string{"5"}, Data: jsonblob.BlobFromRaw(bytes.Repeat([]byte("large"), 150_000)),
		FileName: new("f"), Summary: new("large"), ContentType: new("text/plain"),
	}
	large.SetDefaults()
	if reply, err := s.Do(t.Context(), dev, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &large}); err != nil || reply.Close() != nil {
		t.Fatal(err)
	}
	for _, request := range []mapping.AttachmentsRequest{
		{Bugs: []string{"5", "alias-one", "2"}, Attachments: []string{"1", "11"}},
		{Bugs: []string{"1", "5"}, Exclude: []string{"data"}},
	} {
		split, err := s.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
		got := process.Text(t, split.Document, err)
		whole, err := s.rules.Load().Trackers["old"].Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
		want := process.Text(t, whole.Document, err)
		var gotValue, wantValue any
		must(t, errors.Join(json.Unmarshal([]byte(got), &gotValue), json.Unmarshal([]byte(want), &wantValue)))
		if !reflect.DeepEqual(gotValue, wantValue) {
			t.Errorf("%+v: %d bytes are not what one tracker answers in %d bytes", request, len(got), len(want))
		}
	}
	if len(candidate.Journal()) != 1 || len(old.Journal()) != 0 || s.Status().Split != 2 {
		t.Errorf("%d reads were split", s.Status().Split)
	}
}
