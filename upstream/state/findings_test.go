package state

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"portico/mapping"
)

// get reads a finding that must be there.
func get(t *testing.T, s *Store, signature string) Finding {
	t.Helper()
	f, _, err := s.Finding(t.Context(), signature)
	must(t, err)
	return f
}

func TestFindingIsSummedUp(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		first := Finding{
			Signature: "a1", Operation: mapping.OpFlagTypes, Class: "type", Path: "$.bug[*].values", Count: 2,
			First: noon.Add(-time.Minute), Last: noon, Note: "number or text", Scopes: []Scope{{"checker", "WebShop"}, {"key", ""}},
		}
		must(t, s.RecordFinding(t.Context(), first, []byte(`{"n":1}`), 3))
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a1", Last: noon.Add(-time.Hour), Kind: "plan", Scopes: []Scope{{"key", ""}, {"", "WebShop"}}}, nil, 3))
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a1", Last: noon.Add(time.Hour), Note: "text"}, []byte(`{"n":2}`), 3))
		want := first
		want.Kind, want.Count, want.Note, want.Status, want.Samples = "reply", 4, "text", StatusOpen, 2
		want.Scopes = []Scope{{"", "WebShop"}, {"checker", "WebShop"}, {"key", ""}}
		want.First, want.Last, want.Changed = noon.Add(-time.Hour), noon.Add(time.Hour), noon
		got, samples, err := s.Finding(t.Context(), "a1")
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if len(samples) != 2 || string(samples[0].Text) != `{"n":2}` || !samples[0].At.Equal(noon.Add(time.Hour)) || samples[1].Signature != "a1" {
			t.Errorf("got the samples %+v", samples)
		}
		if all, err := s.Findings(t.Context()); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
			t.Errorf("got %+v, %v", all, err)
		}
		for i := range 2 * maxScopes {
			must(t, s.RecordFinding(t.Context(), Finding{Signature: "a1", Scopes: []Scope{{fmt.Sprint(i), ""}}}, nil, 3))
		}
		if kept := get(t, s, "a1").Scopes; len(kept) != maxScopes {
			t.Errorf("%d scopes are kept", len(kept))
		}
		must(t, s.StartCampaign(t.Context(), "ada", "a new release"))
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a1"}, nil, 3))
		if kept := get(t, s, "a1").Scopes; len(kept) != 0 {
			t.Errorf("after a reset: %v", kept)
		}
	})
}

func TestAbsentFinding(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		if _, _, err := s.Finding(t.Context(), "none"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "reading the findings") {
			t.Errorf("got %v, want %v and what was tried", err, ErrNotFound)
		}
		if err := s.Judge(t.Context(), "none", StatusFixed, "a", "b", time.Time{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want %v", err, ErrNotFound)
		}
		if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 0 {
			t.Errorf("got %v, %v, want no record of what was not done", records, err)
		}
	})
}

func TestJudgementsAreRecorded(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a1"}, nil, 0))
		must(t, s.Judge(t.Context(), "a1", StatusAccepted, "ada", "harmless", noon.Add(time.Hour)))
		if f := get(t, s, "a1"); f.Status != StatusAccepted || f.Actor != "ada" || f.Reason != "harmless" || !f.Until.Equal(noon.Add(time.Hour)) {
			t.Errorf("got %+v", f)
		}
		must(t, s.Judge(t.Context(), "a1", StatusOpen, "bob", "not so", noon.Add(time.Hour)))
		if f := get(t, s, "a1"); f.Status != StatusOpen || f.Actor != "bob" || !f.Until.IsZero() {
			t.Errorf("got %+v", f)
		}
		records, err := s.Audit(t.Context(), 9)
		must(t, err)
		want := []Record{
			{ID: records[0].ID, At: noon, Actor: "bob", Action: "finding.open", Subject: "a1", Reason: "not so"},
			{ID: records[1].ID, At: noon, Actor: "ada", Action: "finding.accepted", Subject: "a1", Reason: "harmless", Detail: []byte(`{"until":"2026-05-04T13:00:00Z"}`)},
		}
		if !reflect.DeepEqual(records, want) {
			t.Errorf("got  %+v\nwant %+v", records, want)
		}
	})
}

func TestFindingsHaveABound(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		fill(t, s, maxFindings-1, `INSERT INTO portico_findings
			(signature, operation, class, path, kind, seen, first_at, last_at, note, status, changed_at)
			SELECT 'f' || n, '', '', '', 'reply', 1, 1, 1, '', 'open', 1`)
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "last"}, nil, 0))
		if err := s.RecordFinding(t.Context(), Finding{Signature: "one more"}, []byte("{}"), 1); !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "last"}, []byte("{}"), 1))
		if _, _, err := s.Finding(t.Context(), "one more"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want %v", err, ErrNotFound)
		}
	})
}

func TestAnyTextIsKept(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		odd := "a\x00b\xffc'\"?$1ü"
		long := strings.Repeat("ü\x00", 100_000)
		must(t, s.RecordFinding(t.Context(), Finding{Signature: odd, Kind: odd, Path: odd, Note: long}, []byte(odd), 1))
		must(t, s.Judge(t.Context(), odd, StatusAccepted, odd, long, time.Time{}))
		f, samples, err := s.Finding(t.Context(), odd)
		must(t, err)
		if want := "a\ufffdb\ufffdc'\"?$1ü"; f.Path != want || f.Actor != want || string(samples[0].Text) != odd {
			t.Errorf("got %q by %q, %q", f.Path, f.Actor, samples[0].Text)
		}
		if len(f.Note) > 3*maxText || len(f.Reason) < maxText/2 {
			t.Errorf("of %d bytes, %d and %d are kept", len(long), len(f.Note), len(f.Reason))
		}
		must(t, s.RecordFinding(t.Context(), Finding{Signature: long}, nil, 0))
		must(t, s.AddTallies(t.Context(), []Tally{{At: future, Answered: long, Other: long, Dropped: map[string]int64{odd: 1}}}))
		must(t, s.AddRuleUses(t.Context(), []RuleUse{{Name: long, Hits: 1}}))
		_, err = s.Revise(t.Context(), 0, Revision{Base: odd, Source: odd, Actor: long, Reason: long}, "")
		must(t, err)
	})
}
