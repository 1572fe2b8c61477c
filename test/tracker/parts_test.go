package tracker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDecodeJSON: values as the real parser makes them, and what it refuses (tracker-behaviour.md section 1, Request bodies).
func TestDecodeJSON(t *testing.T) {
	for in, want := range map[string]any{
		`7`: int64(7), `-0`: int64(0), `5.0`: 5.0, `1e3`: 1000.0, `99999999999999999999`: 1e20, `"a\u0000\ud83d\udea9\/"`: "a\x00🚩/",
		` null `: nil, `true`: true, `""`: "", `{"a":1,"a":2}`: object{"a": int64(2)}, `[]`: []any{}, `{ }`: object{},
	} {
		if got, err := decodeJSON(in); err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %#v %v, want %#v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", " ", "{", `{"a":1,}`, `{"a":1,}"b":2}`, `[1,]`, `{a:1}`, `{'a':1}`, "NaN", `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, "\"a\tb\"",
		`"\x"`, `"\u12"`, "01", "1.", ".5", "+1", "-", "1e", "truex", "{} x", "\ufeff{}", `{"a":1 /* c */}`, `"`, `"\`, `{"a"}`, `{"a":1 "b":2}`, `[1 2]`,
		strings.Repeat("[", 513) + strings.Repeat("]", 513)} {
		if v, err := decodeJSON(bad); err == nil {
			t.Errorf("%q was read as %#v", bad, v)
		}
	}
	if _, err := decodeJSON(strings.Repeat("[", 512) + strings.Repeat("]", 512)); err != nil {
		t.Errorf("512 levels: %v", err)
	}
}

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

func TestTruth(t *testing.T) {
	for _, v := range []any{nil, false, int64(0), 0.0, "", "0"} {
		if truth(v) {
			t.Errorf("%#v is true", v)
		}
	}
	for _, v := range []any{true, int64(2), 0.5, "0.0", "00", "false", " ", []any{}, object{}} {
		if !truth(v) {
			t.Errorf("%#v is false", v)
		}
	}
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

func TestBase64IsLenient(t *testing.T) {
	for in, want := range map[string]string{"c29tZQ": "some", "c29tZQ====": "some", "YQ==YQ==": "a", "Y": "", "_-_-": "", "é☃": "", "=YQ==": "", "Y=Q=": ""} {
		if got := string(decodeBase64(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestPaths: what the web server makes of a path before the tracker sees it.
func TestPaths(t *testing.T) {
	for in, want := range map[string]string{"/a%20b": "/a b", "/%62ug": "/bug", "/a%zz": "400", "/a%2": "400", "/a%2fb": "404", "/a%00": "404", "/a%00%zz": "400"} {
		got, status := decodePath(in, "")
		if status != 0 {
			got = fmt.Sprint(status)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"//rest///bug": "/rest/bug", "/rest/./x/../y": "/rest/y", "/rest/": "/rest/", "/": "/", "/a/..": "/", "/a/.": "/a/", "/.. ": "/.. ", "/..": "!"} {
		got, status := collapse(in)
		if status != 0 {
			got = "!"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestFormFields(t *testing.T) {
	p := joined(parseForm("a=1&b=x+y%26;a=2&c&=z&d=%zz&e=%C3%BC&f=%fc"))
	for name, want := range map[string]string{"a": "[1 2]", "b": "x y&", "c": "", "": "z", "d": "%zz", "e": "ü", "f": "ü"} {
		if got := fmt.Sprint(p[name]); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := fmt.Sprint(joined(parseForm("one+two"))); got != "map[keywords:[one two]]" {
		t.Errorf("keywords: %s", got)
	}
}

func TestOddNamesAreDropped(t *testing.T) {
	p := object{"a.b-c_1": 1, "é": 2, "a b": 3, "x/y": 4, "list": []any{object{"A+B & C": 5, "ok": 6}}}
	dropOddNames(p)
	if got := fmt.Sprint(p); got != "map[a.b-c_1:1 list:[map[ok:6]] é:2]" {
		t.Errorf("got %s", got)
	}
}
