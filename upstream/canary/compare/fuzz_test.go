package compare

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// FuzzCompare compares any two texts, and holds the result against what another
// reader of JSON makes of them. The corpus is in testdata/fuzz/FuzzCompare.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"bug":[{"id":1,"name":"a"}],"attachment":[]}`), []byte(`{"bug":[{"id":2,"name":"a"}],"attachment":[]}`), byte(0))
	f.Add([]byte(`{"bugs":{"1":[{"id":1,"flags":[]}]},"attachments":{}}`), []byte(`{"bugs":{"1":[{"flags":[],"id":1.0}]},"attachments":{}}`), byte(3))
	f.Add([]byte(`[1,1.0,1e0,-0,"\u00fc"]`), []byte(`[1,1,1,0,"ü"]`), byte(9))
	redactor := NewRedactor()
	f.Fuzz(func(t *testing.T, one, two []byte, which byte) {
		operation := append(mapping.Operations(), "")[int(which)%(len(mapping.Operations())+1)]
		first, second := Reply{Status: 200, Body: one}, Reply{Status: 200, Body: two}
		found := Compare(operation, first, second, Rules{})
		if again := Compare(operation, first, second, Rules{}); !reflect.DeepEqual(found, again) {
			t.Fatalf("once %s, then %s", said(found), said(again))
		}
		if back := Compare(operation, second, first, Rules{}); (len(back) == 0) != (len(found) == 0) {
			t.Fatalf("%q there, %q back", said(found), said(back))
		}
		for _, same := range []Reply{first, second} {
			spaced := same
			if json.Valid(same.Body) {
				spaced.Body = append([]byte(" "), same.Body...)
			}
			if self := Compare(operation, same, spaced, Rules{}); len(self) > 0 {
				t.Fatalf("%s differs from itself: %s", same.Body, said(self))
			}
		}
		if operation == "" && len(found) == 0 {
			meansTheSame(t, one, two)
		}
		sound(t, redactor, found)
	})
}

// meansTheSame fails when another reader sees a difference.
func meansTheSame(t *testing.T, one, two []byte) {
	t.Helper()
	first, err := readAny(one)
	second, other := readAny(two)
	if err == nil && other == nil && !reflect.DeepEqual(first, second) {
		t.Fatalf("nothing found between %q and %q", one, two)
	}
}

func readAny(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return plainNumbers(value), err
}

// plainNumbers gives equal numbers one form, and texts that differ in an address.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if number, err := v.Float64(); err == nil {
			return number
		}
	case string:
		return string(withoutAddresses([]byte(v)))
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return value
}

// sound checks what must hold of any difference.
func sound(t *testing.T, redactor *Redactor, found []Difference) {
	t.Helper()
	for _, d := range found {
		if !strings.HasPrefix(d.Path, "$") || !strings.HasPrefix(d.Pointer, "$") || d.Want == nil && d.Have == nil || d.Class == "" {
			t.Fatalf("the difference is %+v", d)
		}
		for _, kept := range []jsontext.Value{redactor.Redact(d.Want, d.Path), redactor.Redact(d.HaveIn, d.Place)} {
			if kept != nil && !json.Valid(kept) {
				t.Fatalf("kept is %q", kept)
			}
		}
	}
}
