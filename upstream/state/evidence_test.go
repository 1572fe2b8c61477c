package state

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"portico/mapping"
)

func TestMismatchesAreCountedByWhatTheyAre(t *testing.T) {
	var tally Tally
	tally.Mismatch([]string{"b", "a", "b"}, 2)
	tally.Mismatch([]string{"a", "b"}, 1)
	tally.Mismatch([]string{"a"}, 4)
	tally.Mismatch(Signatures(AnyMismatch), 5)
	if want := map[string]int64{"a,b": 3, "a": 4, AnyMismatch: 5}; !reflect.DeepEqual(tally.Mismatches, want) {
		t.Errorf("got %v, want %v", tally.Mismatches, want)
	}
	if got := Signatures("a,b"); !slices.Equal(got, []string{"a", "b"}) || Signatures(AnyMismatch) != nil {
		t.Errorf("got %v and %v", got, Signatures(AnyMismatch))
	}
}

// TestMismatchesAreBounded and none is lost.
func TestMismatchesAreBounded(t *testing.T) {
	var tally Tally
	for i := range 2000 {
		tally.Mismatch([]string{fmt.Sprintf("%016x", i)}, 1)
		tally.Mismatch([]string{"0000000000000000"}, 1)
	}
	var sum, size int64
	for key, n := range tally.Mismatches {
		sum, size = sum+n, size+int64(len(key))
	}
	if sum != 4000 || size > maxMismatchText+1 || tally.Mismatches[AnyMismatch] == 0 || tally.Mismatches["0000000000000000"] != 2001 {
		t.Errorf("%d mismatches under %d keys of %d bytes", sum, len(tally.Mismatches), size)
	}
}

// TestFixedBeginsEvidenceAnew for the operation, to the moment.
func TestFixedBeginsEvidenceAnew(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		tally := func(operation mapping.Operation) Tally {
			return Tally{At: clock.now(), Answered: "main", Other: "next", Operation: operation, Compared: 1, Dropped: map[string]int64{}}
		}
		add := func() {
			must(t, s.AddTallies(t.Context(), []Tally{tally(mapping.OpFlagTypes), tally(mapping.OpAttachment)}))
		}
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a", Operation: mapping.OpFlagTypes}, nil, 0))
		must(t, s.Judge(t.Context(), "a", StatusAccepted, "ada", "why", time.Time{}))
		clock.pass(20 * time.Second)
		add()
		if since, err := s.Evidence(t.Context()); err != nil || len(since) != 0 {
			t.Errorf("got %v, %v, want that all counts", since, err)
		}
		must(t, s.Judge(t.Context(), "a", StatusFixed, "ada", "why", time.Time{}))
		fixed := clock.now()
		clock.pass(time.Second)
		add()
		clock.pass(time.Minute)
		add()
		if since, err := s.Evidence(t.Context()); err != nil || len(since) != 1 || !since[mapping.OpFlagTypes].Equal(fixed) {
			t.Errorf("got %v, %v, want it since %v", since, err, fixed)
		}
		var got []string
		all, err := s.Tallies(t.Context(), time.Time{})
		must(t, err)
		for _, row := range all {
			got = append(got, fmt.Sprint(row.Operation, " ", row.At.Sub(noon), " ", row.Compared))
		}
		want := []string{"attachment.get 0s 2", "flag_type.get 0s 1", "flag_type.get 20s 1", "attachment.get 1m0s 1", "flag_type.get 1m0s 1"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		must(t, s.StartCampaign(t.Context(), "bob", "anew"))
		if since, err := s.Evidence(t.Context()); err != nil || len(since) != 0 {
			t.Errorf("got %v, %v after a new campaign", since, err)
		}
	})
}

// TestFirstFormIsBroughtUpToDate: what an earlier version has counted counts on.
func TestFirstFormIsBroughtUpToDate(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		s, err := connect(dsn)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		must(t, s.migrate(t.Context(), until(t, 1)))
		for i, confirmed := range []int64{0, 3} {
			run(t, s, `INSERT INTO portico_tallies
				(minute, answered, other, operation, compared, same, noisy, transient, confirmed, accepted)
				VALUES (?, 'main', 'next', 'flag_type.get', 9, 4, 0, 0, ?, 2)`, micros(noon.Add(time.Duration(i)*time.Minute)), confirmed)
		}
		for signature, status := range map[string]string{"a": "open", "b": "fixed"} {
			run(t, s, `INSERT INTO portico_findings
				(signature, operation, class, path, kind, seen, first_at, last_at, note, status, changed_at)
				VALUES (?, ?, 'value', '$', 'reply', 3, 1, 1, '', ?, ?)`, signature, "attachment."+signature, status, micros(noon))
		}
		must(t, s.migrate(t.Context(), migrations))
		tallies, err := s.Tallies(t.Context(), time.Time{})
		must(t, err)
		if len(tallies) != 2 || len(tallies[0].Mismatches) != 0 || !reflect.DeepEqual(tallies[1].Mismatches, map[string]int64{AnyMismatch: 3}) || tallies[1].Compared != 9 {
			t.Errorf("the tallies are %+v", tallies)
		}
		if since, err := s.Evidence(t.Context()); err != nil || len(since) != 1 || !since["attachment.b"].Equal(noon) {
			t.Errorf("what was fixed before counts since %v (%v)", since, err)
		}
	})
}
