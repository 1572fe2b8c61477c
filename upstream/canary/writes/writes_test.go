package writes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/writes"
)

// TestPlansAreComparedByMeaning: dialects spell the same write differently.
func TestPlansAreComparedByMeaning(t *testing.T) {
	const reference = `{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":1,"is_obsolete":0,"sortkey":"5","inclusions":{"P":["a","c"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}],"x":null}}`
	for candidate, same := range map[string]bool{
		`{"path":"/rest.cgi/flag_types/2","query":{},"body":{"inclusions":[{"P":["c"]},{"P":["a"]}],"exclusions":[{"Q":["b"]}],"ids":["1","2"],"is_active":true,"is_obsolete":false,"sortkey":5,"flags":[{"type_id":"3"}]}}`: true,
		`{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":0,"is_obsolete":0,"sortkey":"5","inclusions":{"P":["a","c"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                                        false,
		`{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":1,"is_obsolete":0,"sortkey":"5","inclusions":{"P":["b","c"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                                        false,
		`{"path":"/rest/bug/1","body":{"ids":[2,1],"is_active":1,"is_obsolete":0,"sortkey":"5","inclusions":{"P":["a","c"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                                              false,
	} {
		render := func(plan string) writes.Render {
			return func(context.Context, upstream.Call) ([]byte, error) { return []byte(plan), nil }
		}
		call := upstream.Call{Operation: mapping.OpUpdateFlagTypes}
		found, _, err := writes.ComparePlans(t.Context(), render(reference), render(candidate), call, compare.Rules{})
		if err != nil || (len(found) == 0) != same {
			t.Errorf("%s: found %+v (%v)", candidate, found, err)
		}
	}
}

// TestWritesExplain differences of the objects that they name, after they were made or as long before as a candidate may lag.
func TestWritesExplain(t *testing.T) {
	seen := writes.NewSeen()
	seen.Note(upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7}}})
	read := upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"7", "8"}}}
	of := func(id string, unstable bool) compare.Difference {
		return compare.Difference{
			Class: compare.ClassValue, Object: "$." + id, WantIn: []byte(`{"id":` + id + `}`), Want: []byte("1"), Have: []byte("2"), Unstable: unstable,
		}
	}
	now := time.Now().UTC()
	changed := func(object string, at time.Time) compare.Difference {
		text := fmt.Appendf(nil, object, at.Format(time.RFC3339))
		return compare.Difference{Class: compare.ClassValue, Object: "$.9", WantIn: text, Want: []byte("1"), Have: []byte("2")}
	}
	for name, c := range map[string]struct {
		d     compare.Difference
		began time.Time
		want  bool
	}{
		"written since":              {of("7", false), now.Add(-time.Second), true},
		"written before":             {of("7", false), now.Add(time.Second), false},
		"written before, and gone":   {of("7", true), now.Add(time.Second), true},
		"written long ago, and gone": {of("7", true), now.Add(2 * time.Minute), false},
		"another object":             {of("8", true), now, false},
		"changed by its own word":    {changed(`{"id":9,"last_change_time":"%s"}`, now), now, true},
		"a flag changed":             {changed(`{"id":9,"flags":[{"id":1,"modification_date":"%s"}]}`, now), now, true},
		"changed long ago":           {changed(`{"id":9,"last_change_time":"%s"}`, now.Add(-time.Hour)), now, false},
		"changed by a fast clock":    {changed(`{"id":9,"last_change_time":"%s"}`, now.Add(30*time.Second)), now, true},
		"changed in the future":      {changed(`{"id":9,"last_change_time":"%s"}`, now.Add(time.Hour)), now, false},
		"another time":               {changed(`{"id":9,"due":"%s"}`, now), now, false},
		"a failure":                  {compare.Difference{Class: compare.ClassFailure, Unstable: true}, now, false},
	} {
		if got := seen.Explains(read, c.d, c.began); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNamesOfFlagTypesHaveNoCase: trackers compare the names of flag types without regard to case.
func TestNamesOfFlagTypesHaveNoCase(t *testing.T) {
	seen := writes.NewSeen()
	seen.Note(upstream.Call{UpdateFlagTypes: &mapping.FlagTypeUpdate{Names: []string{"Review"}}})
	read := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}}
	for name, want := range map[string]bool{"review": true, "other": false} {
		d := compare.Difference{Class: compare.ClassValue, Object: "$." + name, WantIn: []byte(`{"name":"` + name + `"}`), Want: []byte("1"), Have: []byte("2")}
		if got := seen.Explains(read, d, time.Now().Add(-time.Second)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestPayloadOfAReplay checks the longest payload that is kept, and that a payload that cannot be read is not kept.
func TestPayloadOfAReplay(t *testing.T) {
	const most = 256 << 10
	payload := func(length int) *jsonblob.Blob {
		blob, err := jsonblob.BlobFromEncoded(strings.Repeat("A", length))
		if err != nil {
			t.Fatal(err)
		}
		return blob
	}
	closed := payload(most)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data *jsonblob.Blob
		want bool
	}{
		"the longest": {payload(most), true}, "too long": {payload(most + 4), false}, "closed": {closed, false},
	} {
		call := upstream.Call{CreateAttachment: &mapping.AttachmentCreate{Data: c.data}}
		if got := writes.TakePayload(&call); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// tells is a tracker that has every product, or responds with an error.
type tells struct {
	upstream.Tracker
	err error
}

func (s tells) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	if s.err != nil {
		return mapping.Reply{}, s.err
	}
	return mapping.Reply{Document: mapping.NewDocument([]byte(`{}`))}, nil
}

// TestProofOfIsolation: only the tracker's own word that it has no such product tells it from the candidate. An error that Portico
// makes proves nothing, whatever its code is.
func TestProofOfIsolation(t *testing.T) {
	away := &mapping.Error{Code: 106, Status: 502, Reason: mapping.ReasonUnreachable}
	none := &mapping.Error{Code: 106, Status: 401}
	for name, test := range map[string]struct {
		reference, candidate error
		proved               bool
	}{
		"the reference has none": {none, nil, true},
		"both have it":           {nil, nil, false},
		"neither has it":         {none, none, false},
		"the reference is away":  {away, nil, false},
		"the reference fails":    {&mapping.Error{Code: 100500, Status: 500}, nil, false},
		"the candidate is away":  {none, away, false},
	} {
		trackers := map[string]upstream.Tracker{"old": tells{err: test.reference}, "new": tells{err: test.candidate}}
		caller := func(string) upstream.Caller { return upstream.Caller{} }
		if proved := writes.IsMarked(t.Context(), trackers, "new", "M", caller); proved != test.proved {
			t.Errorf("%s: proved is %t", name, proved)
		}
	}
}

// TestLagIsBounded: a replay that is very late excuses a minute and the step of the clock, no more.
func TestLagIsBounded(t *testing.T) {
	var replays writes.Replays
	replays.Repeated(time.Hour)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for apart, want := range map[time.Duration]bool{61 * time.Second: true, 62 * time.Second: false} {
		text := func(at time.Time) []byte { return []byte(`"` + at.Format(time.RFC3339) + `"`) }
		d := compare.Difference{Class: compare.ClassTime, Path: "$.creation_time", Want: text(noon), Have: text(noon.Add(apart))}
		if got := replays.Excuses(d); got != want {
			t.Errorf("%v apart: %t", apart, got)
		}
	}
}

// places knows that attachment 7 is of bug 5, and that one of a product.
type places struct{}

func (places) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	if id != 7 {
		return 0, &mapping.Error{Code: 100}
	}
	return 5, nil
}

func (places) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	if ref != "5" && ref != "alias" {
		return mapping.Place{}, &mapping.Error{Code: 101}
	}
	return mapping.Place{Bug: 5, Product: "P"}, nil
}

// TestProductOfACall: what a call does not say is looked up, and what cannot be found is empty.
func TestProductOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		call upstream.Call
		want string
	}{
		"flag types":       {upstream.Call{FlagTypes: &mapping.FlagTypesRequest{Product: "Q"}}, "Q"},
		"a new flag type":  {upstream.Call{CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Inclusions: &mapping.Scopes{{}, {Product: "R"}}}}}, "R"},
		"a flag type":      {upstream.Call{UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{7}}}, ""},
		"a bug":            {upstream.Call{Attachments: &mapping.AttachmentsRequest{Bugs: []string{"alias"}, Attachments: []string{"8"}}}, "P"},
		"an attachment":    {upstream.Call{Attachments: &mapping.AttachmentsRequest{Attachments: []string{"7"}}}, "P"},
		"another one":      {upstream.Call{Attachments: &mapping.AttachmentsRequest{Attachments: []string{"8"}}}, ""},
		"a new attachment": {upstream.Call{CreateAttachment: &mapping.AttachmentCreate{PathBug: "5"}}, "P"},
		"an update":        {upstream.Call{UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7}}}, "P"},
		"nothing":          {upstream.Call{}, ""},
	} {
		if got := writes.Product(t.Context(), places{}, upstream.Caller{}, c.call); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusals: of one tracker the reference's refusal is what is wanted, and the candidate's is what there is. Where both refuse, each
// in its own way, nothing differs.
func TestRefusals(t *testing.T) {
	call := upstream.Call{Operation: mapping.OpUpdateFlagTypes}
	for refuses, want := range map[string][2]bool{"old": {true, false}, "new": {false, true}, "old and new": {}} {
		render := func(tracker string) writes.Render {
			return func(context.Context, upstream.Call) ([]byte, error) {
				if strings.Contains(refuses, tracker) {
					return nil, &mapping.Error{Code: 100 + int(tracker[0]), Reason: mapping.ReasonInexpressive}
				}
				return []byte(`{}`), nil
			}
		}
		found, _, err := writes.ComparePlans(t.Context(), render("old"), render("new"), call, compare.Rules{})
		var got [2]bool
		for _, d := range found {
			got = [2]bool{d.Want != nil, d.Have != nil}
		}
		if err != nil || got != want {
			t.Errorf("%s refuses: %+v (%v)", refuses, found, err)
		}
	}
}

// TestReadAfterAWriteIsBounded: a number of attachments is read after one write, without content that it did not change, and none where the
// reply names none.
func TestReadAfterAWriteIsBounded(t *testing.T) {
	ids := make([]int64, 30)
	reply, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		t.Fatal(err)
	}
	if read, ok := writes.Touched(upstream.Call{CreateAttachment: &mapping.AttachmentCreate{}}, jsontext.Value(`{"ids":[]}`)); ok {
		t.Errorf("no ids: %+v", read.Attachments)
	}
	for name, write := range map[string]upstream.Call{
		"create": {CreateAttachment: &mapping.AttachmentCreate{}}, "update": {UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}},
	} {
		read, ok := writes.Touched(write, reply)
		if !ok || len(read.Attachments.Attachments) != 20 || slices.Contains(read.Attachments.Exclude, "data") != (name == "update") {
			t.Errorf("%s: %+v", name, read.Attachments)
		}
	}
}

// TestEveryWriteIsReadBack: it is known of each what shows its result, and it explains what differs there.
func TestEveryWriteIsReadBack(t *testing.T) {
	scopes := mapping.Scopes{{Product: "P"}}
	name := "n"
	calls := map[mapping.Operation]upstream.Call{
		mapping.OpCreateFlagType:    {CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: &name, Inclusions: &scopes}}},
		mapping.OpUpdateFlagTypes:   {UpdateFlagTypes: &mapping.FlagTypeUpdate{Names: []string{"n"}, FlagTypeFields: mapping.FlagTypeFields{Inclusions: &scopes}}},
		mapping.OpCreateAttachment:  {CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"7"}}},
		mapping.OpUpdateAttachments: {UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7}}},
	}
	for _, operation := range mapping.Operations() {
		if !operation.IsWrite() {
			continue
		}
		read, known := writes.Touched(calls[operation], jsontext.Value(`{"ids":[7]}`))
		if !known {
			t.Errorf("nothing is read back after %s", operation)
			continue
		}
		seen, began := writes.NewSeen(), time.Now()
		seen.Note(calls[operation])
		object := jsontext.Value(`{"id":7,"name":"n"}`)
		if d := (compare.Difference{Class: compare.ClassValue, Want: object, WantIn: object}); !seen.Explains(read, d, began) {
			t.Errorf("%s explains no difference in what is read back", operation)
		}
	}
}
