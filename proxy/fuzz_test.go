package proxy

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// What a form or query means is checked against net/url, where both have the same rules.
func FuzzForms(f *testing.F) {
	for _, seed := range []string{"a=b&c=d", "a=b&a=c", "=x&&a", "a=%41+%zz%", "ids=1&ids=2", "%26=%3D", "a==b", "data=++", "a=\xff", "é=é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, ";") || strings.Count(text, "&") > 500 || strings.Contains(text, "data") {
			return
		}
		want, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		list, fine := parseQuery(text)
		if fine != validForm(want) {
			t.Fatalf("%q: valid UTF-8 %v", text, fine)
		}
		if delete(want, ""); !fine && validForm(want) {
			return
		}
		got := url.Values{}
		for _, each := range list {
			if each.name != "" {
				got.Add(each.name, each.value)
			}
		}
		if fine && !reflect.DeepEqual(got, want) {
			t.Fatalf("query %q: %v, want %v", text, got, want)
		}
		checkBody(t, text, want)
	})
}

func validForm(values url.Values) bool {
	for name, list := range values {
		if !utf8.ValidString(name) || slices.ContainsFunc(list, func(value string) bool { return !utf8.ValidString(value) }) {
			return false
		}
	}
	return true
}

// checkBody reads the same text as the body of a form.
func checkBody(t *testing.T, text string, want url.Values) {
	x := &exchange{server: &Server{options: Options{Limits: Limits{Limits: mapping.Limits{}.WithDefaults()}}}}
	members, err := x.urlencoded(strings.NewReader(text))
	if !validForm(want) {
		var refused *mapping.Error
		if !errors.As(err, &refused) || refused.Code != mapping.CodeJSON {
			t.Fatalf("form %q: %v", text, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("form %q: %v", text, err)
	}
	for name, list := range want {
		value := members.Get(name)
		if !value.IsValid() {
			t.Fatalf("form %q: %s is %s", text, name, value)
		}
		if len(list) == 1 && name != "inclusions" && name != "exclusions" {
			plain, err := jsontext.AppendUnquote(nil, value)
			if err != nil || string(plain) != list[0] {
				t.Fatalf("form %q: %s is %s", text, name, value)
			}
		}
	}
}

// No call of the older interfaces upsets the look into it.
func FuzzCalls(f *testing.F) {
	for _, seed := range []string{`{"method":"FlagType.update"}`, `[{"method":1}]`, `{"method":{"method":"x"}}`, "<methodCall><methodName>x</methodName>", "<a>&#0;", "\xff\xfe<"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/jsonrpc.cgi", "/xmlrpc.cgi"} {
			named := strings.Contains(string(body), "FlagType.") || strings.ContainsAny(string(body), `\&<`)
			if changesFlagTypes(path, body, true) && !named {
				t.Fatalf("%s: %q changes nothing", path, body)
			}
		}
	})
}
