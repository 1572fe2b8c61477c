package state

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"
)

func pair(client int64, side string, native int64) IDPair {
	return IDPair{Kind: "attachment", Client: client, Side: side, Native: native}
}

// kept lists what the store has.
func kept(t *testing.T, s *Store) (all []IDPair) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	must(t, s.EachID(ctx, func(p IDPair) error {
		all = append(all, p)
		return nil
	}))
	return all
}

func TestIDsAreFoundByBothKeys(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		bug := IDPair{Kind: "bug", Client: 5, Side: "new", Native: 901}
		must(t, s.AddIDs(t.Context(), []IDPair{pair(5, "new", 900), pair(1007, "old", 12), bug}))
		must(t, s.AddIDs(t.Context(), nil))
		found, err := s.IDs(t.Context(), []IDKey{
			{Kind: "attachment", ID: 5}, {Kind: "attachment", Side: "old", ID: 12}, {Kind: "attachment", Side: "new", ID: 12},
			{Kind: "bug", Side: "new", ID: 901}, {Kind: "attachment", ID: 900}, {Kind: "flag", ID: 5},
		})
		must(t, err)
		want := map[IDKey]IDPair{}
		for _, p := range []IDPair{pair(5, "new", 900), pair(1007, "old", 12), bug} {
			for _, key := range p.Keys() {
				want[key] = p
			}
		}
		if !maps.Equal(found, want) {
			t.Errorf("found %v, want %v", found, want)
		}
		if found, err := s.IDs(t.Context(), []IDKey{{Kind: "attachment", Side: "new", ID: 12}}); err != nil || len(found) != 0 {
			t.Errorf("found %v at the other side (%v)", found, err)
		}
		enough := errors.New("enough")
		if err := s.EachID(t.Context(), func(IDPair) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("a visit that fails: %v", err)
		}
		if all := kept(t, s); !slices.Equal(all, []IDPair{pair(5, "new", 900), pair(1007, "old", 12), bug}) {
			t.Errorf("kept are %v", all)
		}
	})
}

func TestIDsAreAddedTogetherOrNotAtAll(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		first := pair(5, "new", 900)
		must(t, s.AddIDs(t.Context(), []IDPair{first, first}))
		must(t, s.AddIDs(t.Context(), []IDPair{first, pair(6, "new", 901)}))
		for name, wrong := range map[string]IDPair{
			"same client": pair(5, "new", 902), "same client, other side": pair(5, "old", 900), "same native": pair(7, "new", 900),
		} {
			err := s.AddIDs(t.Context(), []IDPair{pair(8, "new", 908), wrong})
			conflict, ok := errors.AsType[*IDConflictError](err)
			if !ok || conflict.Kept != first || conflict.New != wrong {
				t.Errorf("%s: got %v, want a conflict of %v with %v", name, err, wrong, first)
			}
		}
		if all := kept(t, s); len(all) != 2 {
			t.Errorf("kept are %v, want two pairs", all)
		}
	})
}
