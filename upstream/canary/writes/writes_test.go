package writes_test

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/writes"
)

// TestPlansAreComparedByMeaning: dialects spell the same write differently.
func TestPlansAreComparedByMeaning(t *testing.T) {
	const reference = `{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":1,"sortkey":"5","inclusions":{"P":["a"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}],"x":null}}`
	for candidate, same := range map[string]bool{
		`{"path":"/rest.cgi/flag_types/2","query":{},"body":{"inclusions":[{"P":["a"]}],"exclusions":[{"Q":["b"]}],"ids":["1","2"],"is_active":true,"sortkey":5,"flags":[{"type_id":"3"}]}}`: true,
		`{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":0,"sortkey":"5","inclusions":{"P":["a"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                            false,
		`{"path":"/rest/flag_type/1","body":{"ids":[2,1],"is_active":1,"sortkey":"5","inclusions":{"P":["b"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                            false,
		`{"path":"/rest/bug/1","body":{"ids":[2,1],"is_active":1,"sortkey":"5","inclusions":{"P":["a"]},"exclusions":{"Q":["b"]},"flags":[{"type_id":3}]}}`:                                  false,
	} {
		plans := map[string]string{"old": reference, "new": candidate}
		render := func(_ context.Context, tracker string, _ upstream.Call) ([]byte, error) {
			return []byte(plans[tracker]), nil
		}
		call := upstream.Call{Operation: mapping.OpUpdateFlagTypes}
		found, _, err := writes.ComparePlans(t.Context(), render, upstream.Sides{Serving: "old", Compared: "new"}, call, compare.Rules{})
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
	now := time.Now()
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
