package switchover

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
)

// gathering is a locator that answers when so many are asking, or takes its time.
type gathering struct {
	Locator
	wanted       int64
	asking, most atomic.Int64
	all          atomic.Int64
	together     chan struct{}
	once         sync.Once
}

func (g *gathering) Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error) {
	g.all.Add(1)
	now := g.asking.Add(1)
	defer g.asking.Add(-1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	if now == g.wanted {
		g.once.Do(func() { close(g.together) })
	}
	select {
	case <-g.together:
	case <-time.After(time.Minute):
	}
	return g.Locator.Bug(ctx, caller, ref)
}

// TestObjectsAreLookedUpSideBySide, not too many at a time, and what is not there is asked for once by each tracker.
func TestObjectsAreLookedUpSideBySide(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	locator := &gathering{Locator: b.atlas, wanted: maxParallelLookups, together: make(chan struct{})}
	b.set(t, func(s *Settings) { s.Locate["old"] = locator })
	var refs []string
	for id := range 30 {
		refs = append(refs, strconv.Itoa(id+1)) // from 10 on there is nothing
	}
	began := time.Now()
	document, err := b.Do(t.Context(), caller("a"), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: refs}})
	if got := process.Text(t, document.Document, err); !strings.Contains(got, `"1":[{"by":"new"}]`) || !strings.Contains(got, `"2":[{"by":"old"}]`) {
		t.Errorf("got %s", got)
	}
	if took := time.Since(began); took > 15*time.Second || locator.most.Load() != maxParallelLookups {
		t.Errorf("it took %v, %d were looked up at a time", took, locator.most.Load())
	}
	if all, beyond := locator.all.Load(), b.beyond.taken(); all != 30 || len(beyond) != 21 {
		t.Errorf("the old tracker was asked %d times, the new one %d times: %q", all, len(beyond), beyond)
	}
}

// broken is a locator with a mistake in it.
type broken struct{ Locator }

func (broken) Bug(context.Context, upstream.Caller, string) (mapping.Place, error) {
	panic("a mistake")
}

// mistaken is a tracker with a mistake in it.
type mistaken struct{ upstream.Tracker }

func (mistaken) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	panic("a mistake")
}

// TestAPanicIsThatOfItsRequest, who can bear it, though both trackers are asked at once: in a part of it or in a lookup.
func TestAPanicIsThatOfItsRequest(t *testing.T) {
	for name, change := range map[string]func(*bench, *Settings){
		"a part":   func(b *bench, s *Settings) { s.Trackers["new"] = mistaken{b.new} },
		"a lookup": func(_ *bench, s *Settings) { s.Locate["old"] = broken{} },
	} {
		t.Run(name, func(t *testing.T) {
			b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
			b.set(t, func(s *Settings) { change(b, s) })
			defer func() {
				if recover() != "a mistake" {
					t.Error("it is gone")
				}
			}()
			_ = ofBugs("1", "2").Make(t.Context(), b.Switchover, caller("a"))
		})
	}
}

// TestALookupIsUsedForTenSeconds and then made again: the object may have moved to another product meanwhile. What is not there is asked for again by
// the next request: it may have been made.
func TestALookupIsUsedForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
		read := func(lookups int, bugs ...string) {
			t.Helper()
			b.atlas.taken()
			if _, err := b.Do(t.Context(), caller("a"), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: bugs}}); err != nil {
				t.Fatal(err)
			}
			if asked := b.atlas.taken(); len(asked) != lookups {
				t.Errorf("asked %q, want %d lookups", asked, lookups)
			}
		}
		read(1, "1")
		time.Sleep(9 * time.Second)
		read(0, "1")
		time.Sleep(2 * time.Second)
		read(1, "1")
		read(2, "55", "56")
		read(2, "55", "56")
	})
}
