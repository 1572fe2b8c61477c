package tracker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecodeJSON: what encoding/json takes is taken, and what it refuses is refused, apart from surrogates and nesting.
func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"\u00e9\n"],"b":null}`, `[true,false]`, `"x`, `{"a":}`, "1e999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.Contains(s, `\u`) || strings.Count(s, "[")+strings.Count(s, "{") > 500 {
			return
		}
		v, err := decodeJSON(s)
		if json.Valid([]byte(s)) != (err == nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && !json.Valid(appendJSON(nil, answerTree(v))) {
			t.Fatalf("%q is written as %s", s, appendJSON(nil, answerTree(v)))
		}
	})
}

// answerTree turns request values into answer values.
func answerTree(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case float64:
		return numberText(v)
	case []any:
		for i := range v {
			v[i] = answerTree(v[i])
		}
	case object:
		for k := range v {
			v[k] = answerTree(v[k])
		}
	}
	return v
}

// FuzzBase64: valid text is decoded as by encoding/base64, and anything put between its characters changes nothing.
func FuzzBase64(f *testing.F) {
	f.Add([]byte("some content\n"), "-")
	f.Add([]byte{0, 255}, "\r\n _")
	f.Fuzz(func(t *testing.T, content []byte, noise string) {
		coded := base64.StdEncoding.EncodeToString(content)
		if got := decodeBase64(coded); !bytes.Equal(got, content) {
			t.Fatalf("%q became %q", coded, got)
		}
		if len(noise)*len(coded) > 1<<20 {
			return
		}
		if strings.ContainsAny(noise, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") {
			return
		}
		if got := decodeBase64(noise + strings.Join(strings.Split(coded, ""), noise)); !bytes.Equal(got, content) {
			t.Fatalf("with %q: %q became %q", noise, coded, got)
		}
	})
}
