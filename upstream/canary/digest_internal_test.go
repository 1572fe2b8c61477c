package canary

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func digestOf(text string, cuts ...int) string {
	d := newLooseDigest()
	for _, cut := range cuts {
		cut = min(cut, len(text))
		_, _ = d.Write([]byte(text[:cut]))
		text = text[cut:]
	}
	_, _ = d.Write([]byte(text))
	return d.text()
}

func TestLooseDigestKnowsNoOrder(t *testing.T) {
	const text = `{"a":"x\"y","b":[1,2,{"c":null}]}`
	for same, others := range map[string][]string{text: {`{"b":[{"c":null},2,1],"a":"x\"y"}`, "{ \"a\" : \"x\\\"y\",\n\"b\":[1,2,{\"c\":null}]}"}} {
		for _, other := range others {
			if digestOf(same) != digestOf(other) {
				t.Errorf("%s and %s have different digests", same, other)
			}
		}
	}
	for _, other := range []string{
		`{"a":"x\"y","b":[1,2,{"c":false}]}`, `{"a":"x\"z","b":[1,2,{"c":null}]}`, `{"b":"x\"y","a":[1,2,{"c":null}]}`,
		`{"a":"x\"y","b":[12,{"c":null}]}`, `{"a":"x\" y","b":[1,2,{"c":null}]}`, `{"a":"x\"y","b":[1,2,["c",null]]}`,
		`{"a":"x\"y","b":[1,2,2,{"c":null}]}`, `{"a":"x\"y","b":["1",2,{"c":null}]}`,
	} {
		if digestOf(text) == digestOf(other) {
			t.Errorf("%s and %s have the same digest", text, other)
		}
	}
}

// TestLooseDigestComesInPieces: where a text is cut means nothing.
func TestLooseDigestComesInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{`{`, `"a"`, `:`, `"b\\"`, `"\""`, `,`, ` `, `12`, `}`, `[`, `]`, `"` + strings.Repeat("Q", 40) + `"`})).Draw(t, "text"), "")
		cuts := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "cuts")
		if digestOf(text) != digestOf(text, cuts...) {
			t.Errorf("%s cut at %v has another digest", text, cuts)
		}
	})
}
