package canary_test

import (
	"slices"
	"testing"

	"portico/test/tracker"
	"portico/upstream"
)

func TestEqualTrackersAreTheSame(t *testing.T) {
	w := newWorld(t, worldOptions{})
	for _, call := range []upstream.Call{
		flagTypes("TestProduct"), attachment("1"), attachment("4", "6"), attachments("1"),
		flagTypes("NoSuchProduct"), attachment("2"), // errors of the tracker
	} {
		w.make(call)
	}
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q between equal trackers", got)
	}
	got := w.sum("")
	if got.Compared != 6 || got.Same != 6 || len(got.Dropped) != 0 {
		t.Errorf("got %+v, want 6 compared and the same", got)
	}
	if n := append(got.AnsweredLatency, 0)[0]; n != 6 || append(got.OtherLatency, 0)[0] != n {
		t.Errorf("the latency of %d and %v answers was counted, want 6", n, got.OtherLatency)
	}
}

// TestPlantedDifferences: each is found under its class and path, and nothing else.
func TestPlantedDifferences(t *testing.T) {
	const list, one = "flag_type.get ", "attachment.get "
	for quirk, want := range map[tracker.Quirk][]string{
		tracker.QuirkMissingField: {
			one + "missing $.attachments[*].creator",
			list + "missing $.attachment[id].is_multiplicable", list + "missing $.bug[id].is_multiplicable",
		},
		tracker.QuirkChangedType: {one + "type $.attachments[*].size", list + "type $.attachment[id].id", list + "type $.bug[id].id"},
		tracker.QuirkReordered:   {list + "order $.attachment", list + "order $.attachment[id].values", list + "order $.bug", list + "order $.bug[id].values"},
		tracker.QuirkWrongValues: {
			one + "value $.attachments[*].summary",
			list + "value $.attachment[id].description", list + "value $.bug[id].description",
		},
		tracker.QuirkVolatile: {
			one + "extra $.attachments[*].served_as",
			list + "extra $.attachment[id].served_as", list + "extra $.bug[id].served_as",
		},
	} {
		t.Run(string(quirk), func(t *testing.T) {
			w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: []tracker.Quirk{quirk}}})
			for range 3 {
				w.make(flagTypes("TestProduct"))
				w.make(attachment("1"))
			}
			if got := w.findings(); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			sum := w.sum("")
			if sum.Compared != 6 || len(sum.Dropped) != 0 || sum.Noisy+sum.Transient != 0 || sum.Confirmed+sum.Same != 6 || sum.Confirmed < 3 {
				t.Errorf("got %+v, want all compared and at least 3 confirmed", sum)
			}
		})
	}
}
