package state

import (
	"errors"
	"reflect"
	"testing"
)

func TestRevisions(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		if r, err := s.CurrentRevision(t.Context()); r.Version != 0 || err != nil {
			t.Errorf("got %+v, %v of an empty database", r, err)
		}
		_, err := s.Revise(t.Context(), 5, Revision{}, "")
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Present.Version != 0 {
			t.Errorf("got %v, want that there is no version yet", err)
		}
		first := Revision{Base: "b1", Source: SourceConfig, Table: []byte(`{"n":1}`), Actor: "ada", Reason: "start", At: noon}
		first, err = s.Revise(t.Context(), 0, first, "")
		must(t, err)
		if first.Version != 1 || !first.At.Equal(noon) {
			t.Errorf("got %+v, want version 1 at noon", first)
		}
		second, err := s.Revise(t.Context(), 1, Revision{Version: 77, Source: SourceAdmin, Table: []byte(`{"n":2}`), At: noon.Add(1)}, "")
		must(t, err)
		for _, expected := range []int64{0, 1, 3, -1} {
			_, err := s.Revise(t.Context(), expected, Revision{}, "")
			conflict, ok := errors.AsType[*ConflictError](err)
			if !ok || !reflect.DeepEqual(conflict.Present, second) {
				t.Errorf("expecting %d: got %v, want that version 2 counts", expected, err)
			}
		}
		if now, err := s.CurrentRevision(t.Context()); err != nil || !reflect.DeepEqual(now, second) {
			t.Errorf("got %+v, %v, want %+v", now, err, second)
		}
		for limit, want := range map[int][]Revision{0: {}, -1: {}, 1: {second}, 9: {second, first}} {
			if got, err := s.Revisions(t.Context(), limit); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the last %d are %+v, %v, want %+v", limit, got, err, want)
			}
		}
	})
}
