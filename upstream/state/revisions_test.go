package state

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRevisions(t *testing.T) {
	onQuick(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		newClock(s)
		if r, ok, err := s.CurrentRevision(t.Context()); ok || err != nil {
			t.Errorf("got %+v, %v of an empty database", r, err)
		}
		_, err := s.Revise(t.Context(), 5, Revision{}, "")
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Present.Version != 0 {
			t.Errorf("got %v, want that there is no version yet", err)
		}
		first := Revision{Base: "b1", Source: SourceConfig, Table: []byte(`{"n":1}`), Actor: "ada", Reason: "start"}
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
		if now, ok, err := s.CurrentRevision(t.Context()); !ok || err != nil || !reflect.DeepEqual(now, second) {
			t.Errorf("got %+v, %v, %v, want %+v", now, ok, err, second)
		}
		for limit, want := range map[int][]Revision{0: nil, -1: nil, 1: {second}, 9: {second, first}} {
			if got, err := s.Revisions(t.Context(), limit); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the last %d are %+v, %v, want %+v", limit, got, err, want)
			}
		}
	})
}

func TestOneRevisionWinsPerVersion(t *testing.T) {
	const writers, versions = 8, 6
	onShared(t, func(t *testing.T, dsn string) {
		stores := []*Store{open(t, dsn), open(t, dsn)}
		for version := range int64(versions) {
			var won atomic.Int64
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range writers {
				all.Go(func() {
					<-start
					made, err := stores[i%2].Revise(context.Background(), version, Revision{Actor: fmt.Sprint(i)}, "")
					_, late := errors.AsType[*ConflictError](err)
					if err == nil && made.Version == version+1 {
						won.Add(1)
					} else if !late {
						t.Errorf("got %+v, %v", made, err)
					}
				})
			}
			close(start)
			all.Wait()
			if won.Load() != 1 {
				t.Fatalf("%d have made version %d", won.Load(), version+1)
			}
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	onQuick(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		fill(t, s, maxRevisions, `INSERT INTO portico_revisions (version, base, source, content, actor, reason, at) SELECT n, '', '', '', '', '', n`)
		_, err := s.Revise(t.Context(), maxRevisions, Revision{}, "")
		must(t, err)
		if got := count(t, s, "portico_revisions"); got != maxRevisions {
			t.Errorf("there are %d, want %d", got, maxRevisions)
		}
	})
}

func TestAuditIsBounded(t *testing.T) {
	onQuick(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		newClock(s)
		fill(t, s, maxRecords, `INSERT INTO portico_audit (at, actor, action, subject, reason) SELECT n, 'a', 'b', 'c', 'd'`)
		last := Record{ID: 7, Actor: "ada", Action: "switchover.killed", Subject: "rules", Reason: "fire", Detail: []byte("{}")}
		must(t, s.Append(t.Context(), last))
		if got := count(t, s, "portico_audit"); got != maxRecords {
			t.Errorf("there are %d, want %d", got, maxRecords)
		}
		got, err := s.Audit(t.Context(), 2)
		must(t, err)
		last.ID, last.At = maxRecords+1, noon
		if len(got) != 2 || !reflect.DeepEqual(got[0], last) || got[1].Actor != "a" {
			t.Errorf("got %+v, want %+v first", got, last)
		}
	})
}
