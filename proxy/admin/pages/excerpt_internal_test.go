package pages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// written puts one side together again.
func (s sides) written() string {
	var text strings.Builder
	for _, l := range s {
		if !l.Gap {
			text.WriteString(l.Indent + l.Label + l.Value + l.Comma + "\n")
		}
	}
	return text.String()
}

type sides []line

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
		a, b := anyJSON().Draw(t, "a"), anyJSON().Draw(t, "b")
		if rapid.Bool().Draw(t, "equal") {
			b = a
		}
		textA, _ := json.Marshal(a)
		textB, _ := json.Marshal(b)
		left, right := sideBySide(textA, textB, rapid.StringMatching(`[$.a-c\[\]]{0,6}`).Draw(t, "path"))
		if len(left) != len(right) {
			t.Fatalf("%d lines beside %d", len(left), len(right))
		}
		for want, got := range map[*[]byte]sides{&textA: left, &textB: right} {
			var again bytes.Buffer
			if err := json.Compact(&again, []byte(got.written())); err != nil || !sameJSON(again.Bytes(), *want) {
				t.Fatalf("%s became %s (%v)", *want, got.written(), err)
			}
		}
		same := sameJSON(textA, textB)
		for i := range left {
			l, r := left[i], right[i]
			if same && (l.Sign+r.Sign != "" || l.Gap || r.Gap) {
				t.Fatalf("equal values differ in line %d: %+v %+v", i, l, r)
			}
			if !l.Gap && !r.Gap && l.Sign == "" && l.Label+l.Value != r.Label+r.Value {
				t.Fatalf("line %d differs and is not marked: %+v %+v", i, l, r)
			}
			if l.Gap && r.Sign == "" || r.Gap && l.Sign == "" {
				t.Fatalf("line %d stands alone and is not marked: %+v %+v", i, l, r)
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
		{`{"a":1,"b":2}`, `{"b":2}`, "{|−\"a\": 1,|\"b\": 2|}", "{||\"b\": 2|}"},
		{`[{"id":1,"v":1},{"id":2}]`, `[{"id":2},{"id":1,"v":1}]`, "[||||{|\"id\": 1,|\"v\": 1|},|−{|−\"id\": 2|−}|]", "[|+{|+\"id\": 2|+},|{|\"id\": 1,|\"v\": 1|}||||]"},
		{`["x"]`, `null`, "≠[|−\"x\"|−]", "≠null||"},
		{``, `{"a":1}`, "||", "+{|+\"a\": 1|+}"},
		{`{"d":{"text":{"length":3,"digest":"ab"}}}`, `{"d":{"text":{"length":4,"digest":"cd"}}}`, "{|≠\"d\": ‹3 characters, #ab›|}", "{|≠\"d\": ‹4 characters, #cd›|}"},
	} {
		left, right := sideBySide([]byte(c.a), []byte(c.b), "")
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
		parts[i] = l.Sign + l.Label + l.Value + l.Comma
	}
	return strings.Join(parts, "|")
}

func TestLongExcerptsAreCut(t *testing.T) {
	long := "[" + strings.Repeat("1,", 2*maxLines) + "1]"
	left, right := sideBySide([]byte(long), []byte("[]"), "")
	if len(left) != maxLines+1 || len(right) != maxLines+1 || !strings.Contains(left[maxLines].Value, "more lines") {
		t.Errorf("%d and %d lines", len(left), len(right))
	}
}

func TestOnlyTheFindingIsInTheForeground(t *testing.T) {
	a, b := `{"flags":[{"id":1,"status":"?"}],"size":1,"name":"x"}`, `{"flags":[{"id":1,"status":"+"}],"size":"1","name":"x"}`
	for path, want := range map[string]string{
		"$.bugs[*][id].flags[id].status": `"status": "?"`, "$.bugs[*][id].size": `"size": 1`, "$.bugs": `"size": 1 "status": "?"`, "": `"size": 1 "status": "?"`,
	} {
		left, _ := sideBySide([]byte(a), []byte(b), path)
		var front []string
		for _, l := range left {
			if l.Sign != "" && !l.Aside {
				front = append(front, l.Label+l.Value)
			}
		}
		slices.Sort(front)
		if got := strings.Join(front, " "); got != want {
			t.Errorf("%s: %s in the foreground, want %s", path, got, want)
		}
	}
}
