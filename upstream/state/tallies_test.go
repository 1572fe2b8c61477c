package state

import (
	"reflect"
	"testing"
	"time"

	"portico/mapping"
)

func TestTalliesAreSummedUp(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		one := Tally{
			At: noon.Add(30 * time.Second).In(time.FixedZone("", 3600)), Answered: "main", Other: "next", Operation: mapping.OpFlagTypes,
			Compared: 10, Same: 4, Noisy: 3, Transient: 2, Confirmed: 1, Accepted: 5, Failed: 3, Mismatches: map[string]int64{"a": 1, "a,b": 5},
			Dropped: map[string]int64{"queue": 1}, AnsweredLatency: []int64{1, 2, 3}, OtherLatency: []int64{5},
		}
		more := Tally{
			At: noon.Add(59 * time.Second), Answered: "main", Other: "next", Operation: mapping.OpFlagTypes,
			Compared: 1, Same: 1, Noisy: 1, Transient: 1, Confirmed: 1, Accepted: 1, Failed: 1, Mismatches: map[string]int64{"a,b": 1, "c": 1},
			Dropped: map[string]int64{"queue": 2, "size": 3}, AnsweredLatency: []int64{1}, OtherLatency: []int64{1, 1, 1, 1},
		}
		must(t, s.AddTallies(t.Context(), []Tally{one, more}))
		must(t, s.AddTallies(t.Context(), []Tally{more}))
		must(t, s.AddTallies(t.Context(), nil))
		got, err := s.Tallies(t.Context(), noon.Add(20*time.Second))
		must(t, err)
		want := []Tally{{
			At: noon, Answered: "main", Other: "next", Operation: mapping.OpFlagTypes,
			Compared: 12, Same: 6, Noisy: 5, Transient: 4, Confirmed: 3, Accepted: 7, Failed: 5, Mismatches: map[string]int64{"a": 1, "a,b": 7, "c": 2},
			Dropped: map[string]int64{"queue": 5, "size": 6}, AnsweredLatency: []int64{3, 2, 3}, OtherLatency: []int64{7, 2, 2, 2},
		}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if later, err := s.Tallies(t.Context(), noon.Add(time.Minute)); err != nil || len(later) != 0 {
			t.Errorf("got %+v, %v, want nothing", later, err)
		}
	})
}

func TestOldTalliesGo(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		at := func(at time.Time) []Tally {
			return []Tally{{At: at, Operation: mapping.OpFlagTypes, Compared: 1}}
		}
		left := func() int {
			tallies, err := s.Tallies(t.Context(), time.Time{})
			must(t, err)
			return len(tallies)
		}
		must(t, s.AddTallies(t.Context(), at(noon)))
		must(t, s.AddTallies(t.Context(), at(noon.Add(time.Hour))))
		clock.pass(30 * 24 * time.Hour)
		must(t, s.AddTallies(t.Context(), at(clock.now())))
		if got := left(); got != 3 {
			t.Errorf("after 30 days %d are left, want all 3", got)
		}
		clock.pass(time.Minute)
		must(t, s.AddTallies(t.Context(), at(clock.now())))
		if got := left(); got != 3 {
			t.Errorf("a minute later %d are left, want 3: the first one has gone", got)
		}
	})
}

// Where nothing is compared any more, no tally is added, so a start removes the old ones, unless that fails.
func TestOpenRemovesOldTallies(t *testing.T) {
	dsn := newFile(t)
	old := open(t, dsn)
	must(t, old.AddTallies(t.Context(), []Tally{{At: time.Now().Add(-31 * 24 * time.Hour), Operation: mapping.OpFlagTypes, Compared: 1}}))
	_, err := old.writer.Exec("CREATE TRIGGER full BEFORE DELETE ON portico_tallies BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
	must(t, err)
	open(t, dsn)
	onShared(t, func(t *testing.T, dsn string) {
		for _, age := range []time.Duration{29 * 24 * time.Hour, 31 * 24 * time.Hour} {
			must(t, open(t, dsn).AddTallies(t.Context(), []Tally{{At: time.Now().Add(-age), Operation: mapping.OpFlagTypes, Compared: 1}}))
		}
		tallies, err := open(t, dsn).Tallies(t.Context(), time.Time{})
		if must(t, err); len(tallies) != 1 {
			t.Errorf("%d tallies are left, want 1", len(tallies))
		}
	})
}

func TestRuleUses(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		must(t, s.AddRuleUses(t.Context(), []RuleUse{{"times", 2, noon}, {"ids", 1, noon}, {"times", 3, noon.Add(-time.Hour)}}))
		must(t, s.AddRuleUses(t.Context(), []RuleUse{{"ids", 4, noon.Add(time.Hour)}, {"never", 0, time.Time{}}}))
		must(t, s.AddRuleUses(t.Context(), nil))
		got, err := s.RuleUses(t.Context())
		must(t, err)
		want := []RuleUse{{"ids", 5, noon.Add(time.Hour)}, {"never", 0, time.Time{}}, {"times", 5, noon}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestCampaignBeginsAnew(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		first, err := s.CurrentCampaign(t.Context())
		must(t, err)
		if first.Actor != "" || time.Since(first.Started).Abs() > time.Minute {
			t.Errorf("the first campaign is %+v", first)
		}
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a"}, []byte("{}"), 3))
		must(t, s.Judge(t.Context(), "a", StatusAccepted, "ada", "known", time.Time{}))
		must(t, s.AddTallies(t.Context(), []Tally{{At: noon, Compared: 1}}))
		must(t, s.AddRuleUses(t.Context(), []RuleUse{{"ids", 1, noon}}))
		_, err = s.Revise(t.Context(), 0, Revision{}, "")
		must(t, err)
		must(t, s.StartCampaign(t.Context(), "bob", "a new candidate"))
		if now, err := s.CurrentCampaign(t.Context()); err != nil || now != (Campaign{noon, "bob", "a new candidate"}) {
			t.Errorf("got %+v, %v", now, err)
		}
		left := map[string]int{}
		for _, table := range []string{"findings", "samples", "tallies", "rule_uses", "audit", "revisions"} {
			if rows := count(t, s, "portico_"+table); rows > 0 {
				left[table] = rows
			}
		}
		if want := map[string]int{"audit": 2, "revisions": 1}; !reflect.DeepEqual(left, want) {
			t.Errorf("there are left %v, want %v", left, want)
		}
		records, err := s.Audit(t.Context(), 1)
		must(t, err)
		if r := records[0]; r.Action != "campaign.started" || r.Actor != "bob" || r.Reason != "a new candidate" {
			t.Errorf("got %+v", r)
		}
		must(t, s.RecordFinding(t.Context(), Finding{Signature: "a"}, nil, 3))
		if f := get(t, s, "a"); f.Status != StatusOpen || f.Count != 1 {
			t.Errorf("got %+v, want one that is new", f)
		}
	})
}
