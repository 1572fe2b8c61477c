package canary_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/tracker"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// answer is what a tracker says to one request.
type answer struct {
	status int
	body   string
}

// saying answers all requests with what say gives for the first, the second and so on.
func saying(say func(n int64) answer) func(http.Handler) http.Handler {
	var asked atomic.Int64
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			said := say(asked.Add(1))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(said.status)
			_, _ = w.Write([]byte(said.body))
		})
	}
}

// types is a successful answer with flag types of the given members, with ids from 1.
func types(members ...string) answer {
	var list []string
	for i, more := range members {
		list = append(list, fmt.Sprintf(`{"id":%d,"name":"f%d","type":"bug",%s}`, i+1, i+1, more))
	}
	return answer{http.StatusOK, `{"attachment":[],"bug":[` + strings.Join(list, ",") + `]}`}
}

// inTurn gives one answer after the other, and begins again.
func inTurn(answers ...answer) func(int64) answer {
	return func(n int64) answer { return answers[int(n-1)%len(answers)] }
}

func always(a answer) func(int64) answer { return inTurn(a) }

// either gives one of two answers, by a sequence of chances that is always the same.
func either(seed byte, one, two answer) func(int64) answer {
	chance := rand.New(rand.NewChaCha8([32]byte{seed}))
	var order []answer
	for range 1000 {
		order = append(order, []answer{one, two}[chance.IntN(2)])
	}
	return inTurn(order...)
}

// compared makes calls one after the other and gives what was found.
func compared(t *testing.T, calls int, old, fresh func(int64) answer) (*world, []string) {
	t.Helper()
	w := newWorld(t, worldOptions{aroundOld: saying(old), around: saying(fresh)})
	for range calls {
		w.make(flagTypes("TestProduct"))
		w.settle()
	}
	return w, w.findings()
}

// TestNoiseOfOneObjectHidesNothingOfOthers: what varies in other flag types, one or very many, is always the same in the last one, and
// wrong at the candidate.
func TestNoiseOfOneObjectHidesNothingOfOthers(t *testing.T) {
	t.Parallel()
	for _, noisy := range []int{1, 250} {
		random := func(constant string) func(int64) answer {
			return func(n int64) answer {
				all := slices.Repeat([]string{fmt.Sprintf(`"description":"random %s %d"`, constant, n)}, noisy)
				return types(append(all, fmt.Sprintf(`"description":%q`, constant))...)
			}
		}
		w, found := compared(t, 8, random("right"), random("WRONG"))
		if got := w.sum(""); !slices.Equal(found, []string{"flag_type.get value $.bug[id].description"}) || got.Confirmed != 8 {
			t.Errorf("beside %d: found %q and %+v, want the last description each time", noisy, found, got)
		}
	}
}

// contradictory are answers between which the reference cannot decide.
func contradictory() map[string][2]answer {
	plain := types(`"age":3`)
	return map[string][2]answer{
		"a member":     {plain, types(`"other":3`)},
		"null":         {plain, types(`"age":null`)},
		"a type":       {plain, types(`"age":"3"`)},
		"a value":      {plain, types(`"age":4`)},
		"the length":   {plain, types(`"age":3`, `"age":3`)},
		"an error":     {plain, {http.StatusNotFound, `{"error":true,"code":106,"message":"no"}`}},
		"its errors":   {{http.StatusNotFound, `{"error":true,"code":51,"message":"no"}`}, {http.StatusNotFound, `{"error":true,"code":106,"message":"no"}`}},
		"its messages": {{http.StatusNotFound, `{"error":true,"code":51,"message":"no"}`}, {http.StatusNotFound, `{"error":true,"code":51,"message":"none"}`}},
	}
}

// TestWhatTheReferenceContradictsIsNoise, whatever it is, when the candidate cannot
// decide either, and also when the candidate has decided.
func TestWhatTheReferenceContradictsIsNoise(t *testing.T) {
	t.Parallel()
	for name, both := range contradictory() {
		for how, fresh := range map[string]func(int64) answer{"both": either(1, both[0], both[1]), "one": always(both[0])} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				w, found := compared(t, 20, either(2, both[0], both[1]), fresh)
				if got := w.sum(""); len(found) != 0 || got.Noisy == 0 || got.Compared != 20 {
					t.Errorf("found %q and %+v, want noise", found, got)
				}
			})
		}
	}
}

// TestWhatTheReferenceNeverSaysIsFound, where it cannot decide between other things.
func TestWhatTheReferenceNeverSaysIsFound(t *testing.T) {
	t.Parallel()
	none := answer{http.StatusNotFound, `{"error":true,"code":106,"message":"no"}`}
	for name, c := range map[string]struct {
		one, two, fresh answer
		want            string
	}{
		"another status": {types(`"age":3`), none, answer{http.StatusBadRequest, `{"error":true,"code":106,"message":"no"}`}, "status status"},
		"another code":   {types(`"age":3`), none, answer{http.StatusNotFound, `{"error":true,"code":51,"message":"no"}`}, "code code"},
		"another type":   {types(`"age":3`), types(`"age":"3"`), types(`"age":true`), "type $.bug[id].age"},
		"another number": {types(`"age":1`), types(`"age":"1"`), types(`"age":1.5`), "type $.bug[id].age"},
		"a value beside": {types(`"age":3,"on":1`), types(`"on":1`), types(`"on":2`), "value $.bug[id].on"},
		"a member gone":  {types(`"age":3,"on":1`), types(`"age":4,"on":1`), types(`"on":1`), "missing $.bug[id].age"},
		"wrong if given": {types(`"age":3`), types(`"x":1`), types(`"age":9`), "value $.bug[id].age"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := compared(t, 12, either(1, c.one, c.two), always(c.fresh))
			if !slices.Contains(found, "flag_type.get "+c.want) {
				t.Errorf("found %q, want %s", found, c.want)
			}
		})
	}
}

// TestRareContradictionsAreSeen: what is new is asked about several times before it
// is believed.
func TestRareContradictionsAreSeen(t *testing.T) {
	t.Parallel()
	one, two := types(`"age":3`), types(`"x":3`)
	w, found := compared(t, 1, inTurn(one, one, one, one, two), always(types(`"y":3`)))
	if slices.Contains(found, "flag_type.get missing $.bug[id].age") {
		t.Errorf("found %q, and the reference lacks it too now and then", found)
	}
	if !slices.Contains(found, "flag_type.get extra $.bug[id].y") {
		t.Errorf("found %q, want what only the candidate has", found)
	}
	if got := w.sum(""); got.Confirmed != 1 {
		t.Errorf("got %+v, want one confirmed", got)
	}
}

// TestReferenceThatFailsMeanwhile: a difference is not believed when the reference cannot be asked again as often as it takes.
func TestReferenceThatFailsMeanwhile(t *testing.T) {
	t.Parallel()
	w, found := compared(t, 1, func(n int64) answer {
		if n > 2 {
			return answer{http.StatusBadGateway, ""}
		}
		return types(`"age":3`)
	}, always(types(`"age":4`)))
	if w.dropped(verdict.DropAnsweredFailed, 1); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}

// TestNoiseLearntMeanwhile: what another comparison has found to be noise while a
// difference waited is not asked about once more.
func TestNoiseLearntMeanwhile(t *testing.T) {
	t.Parallel()
	volatile := tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkVolatile}}
	w := newWorld(t, worldOptions{old: volatile, fresh: volatile, tune: func(o *canary.Options) {
		o.Workers, o.ConfirmAfter = 1, 500*time.Millisecond
	}})
	const calls = 6
	for range calls {
		w.make(attachment("1"))
	}
	if got := w.sum(""); got.Noisy != calls || got.Compared != calls {
		t.Errorf("got %+v, want %d noisy", got, calls)
	}
	// At most for the client, to confirm, and of two comparisons once more.
	if n := w.old.Requests()["attachment.get"]; n > calls+calls+2 {
		t.Errorf("the old tracker was asked %d times for %d calls", n, calls)
	}
}

// TestManyDifferencesInOneObject have samples for a few of them only.
func TestManyDifferencesInOneObject(t *testing.T) {
	t.Parallel()
	members := func(name string) func(http.Handler) http.Handler {
		var list strings.Builder
		for i := range 300 {
			fmt.Fprintf(&list, `"%s%d":%d,`, name, i, i)
		}
		return rewriting(func(int64, *http.Request, []byte) []byte {
			return []byte(`{"attachment":[],"bug":[{` + list.String() + `"id":1,"name":"a","type":"bug"}]}`)
		})
	}
	w := newWorld(t, worldOptions{aroundOld: members("a"), around: members("b")})
	w.make(flagTypes("TestProduct"))
	w.settle()
	if sum := w.sum(""); sum.Confirmed != 1 {
		t.Errorf("got %+v, want one mismatch", sum)
	}
	list, err := w.store.Findings(t.Context())
	must(t, err)
	sampled := 0
	for _, f := range list {
		sampled += f.Samples
	}
	if len(list) < 100 || sampled == 0 || sampled > 200 {
		t.Errorf("%d findings with %d samples", len(list), sampled)
	}
}
