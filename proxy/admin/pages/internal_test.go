package pages

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

func anyJSON() *rapid.Generator[any] {
	scalar := rapid.OneOf(rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.Int8().AsAny(), rapid.StringMatching(`[a-c<&"\\é]{0,3}`).AsAny())
	small := rapid.StringMatching(`id|name|[a-c]`)
	level := scalar
	for range 3 {
		below := level
		level = rapid.OneOf(scalar, rapid.SliceOfN(below, 0, 4).AsAny(), rapid.MapOfN(small, below, 0, 4).AsAny())
	}
	return level
}

func TestBothSidesAreWhatTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		textA, _ := json.Marshal(anyJSON().Draw(t, "a"))
		textB, _ := json.Marshal(anyJSON().Draw(t, "b"))
		left, right := sideBySide(textA, textB)
		for want, got := range map[*[]byte][]line{&textA: left, &textB: right} {
			var again strings.Builder
			for _, l := range got {
				again.WriteString(l.Indent + l.Text + "\n")
			}
			if !sameJSON([]byte(again.String()), *want) {
				t.Fatalf("%s became %s", *want, &again)
			}
		}
		for _, l := range left {
			if sameJSON(textA, textB) && l.Differs {
				t.Fatalf("equal values differ in %+v", l)
			}
		}
	})
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return bytes.Equal(one, other)
}

func TestSideBySide(t *testing.T) {
	for _, c := range []struct{ a, b, left, right string }{
		{`{"id":1,"a":true}`, `{"id":1,"a":1}`, "{|≠\"a\": true,|\"id\": 1|}", "{|≠\"a\": 1,|\"id\": 1|}"},
		{`{"a":1,"b":2}`, `{"a":1}`, "{|\"a\": 1,|≠\"b\": 2|}", "{|\"a\": 1|}"},
		{``, `{"a":"<"}`, "", "≠{|≠\"a\": \"<\"|≠}"},
		{`{"d":{"text":{"length":3,"digest":"ab"}}}`, `{"d":{"text":{"length":4,"digest":"cd"}}}`, "{|≠\"d\": \"‹3 characters, #ab›\"|}", "{|≠\"d\": \"‹4 characters, #cd›\"|}"},
	} {
		left, right := sideBySide([]byte(c.a), []byte(c.b))
		for got, want := range map[string]string{flat(left): c.left, flat(right): c.right} {
			if got != want {
				t.Errorf("%s beside %s:\n%s, want\n%s", c.a, c.b, got, want)
			}
		}
	}
}

func flat(lines []line) string {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = l.Text
		if l.Differs {
			parts[i] = "≠" + l.Text
		}
	}
	return strings.Join(parts, "|")
}

func TestLongExcerptsAreCut(t *testing.T) {
	left, _ := sideBySide([]byte("["+strings.Repeat("1,", 2*maxLines)+"1]"), []byte("[]"))
	if len(left) != maxLines+1 || !strings.Contains(left[maxLines].Text, "more lines") {
		t.Errorf("%d lines", len(left))
	}
}

func TestTimeline(t *testing.T) {
	end := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	got := drawTimeline(verdict.Report{Timeline: []verdict.TimePoint{{At: end.Add(-2 * time.Minute), Dropped: 1}, {At: end.Add(-time.Minute)}, {At: end, Compared: 2}}})
	if len(got.Points) != 2 || !got.Points[0].At.Equal(end) || !got.From.Equal(end.Add(-29*time.Minute)) || !strings.HasPrefix(got.Text, "From 02:35 to 03:04 UTC: 2 comparisons") {
		t.Errorf("got %+v", got)
	}
}

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		plural(1, "rule", "rules"): "1 rule", plural(0, "rule", "rules"): "0 rules",
		quoteShell("it's"): `'it'\''s'`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryClassAndReasonIsExplained(t *testing.T) {
	for _, class := range compare.Classes() {
		if class.Means() == "" {
			t.Errorf("the class %s is not explained", class)
		}
	}
	source, err := os.ReadFile("../../../upstream/canary/verdict/drops.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`DropReason = "([a-z-]+)"`).FindAllSubmatch(source, -1)
	for _, reason := range reasons {
		if drops[verdict.DropReason(reason[1])] == "" {
			t.Errorf("the reason %s is not explained", reason[1])
		}
	}
	if len(reasons) != len(drops) {
		t.Errorf("%d reasons, and %d are explained", len(reasons), len(drops))
	}
}
