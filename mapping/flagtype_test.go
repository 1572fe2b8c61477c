package mapping

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// decodeError gives the code of a decoding error, 0 for none.
func decodeError(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var said *Error
	if !errors.As(err, &said) {
		t.Fatalf("got error %v, want a *Error", err)
	}
	if said.Status < 400 || said.Message == "" || said.FromTracker() {
		t.Errorf("a refusal has status %d, message %q, reason %q", said.Status, said.Message, said.Reason)
	}
	return said.Code
}

func members(t *testing.T, text string) Members {
	t.Helper()
	m, err := ParseMembers([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return m
}

// tenAddresses is a list of ten addresses of a length.
func tenAddresses(length int) string {
	address := `"` + strings.Repeat("a", length-len("@x.example")) + `@x.example"`
	return strings.Repeat(address+",", 9) + address
}

func TestDecodeFlagTypeCreate(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       int
	}{
		{"no name, before a bad scope", `{"description":"d","inclusions":7,"is_active":[]}`, CodeRequired},
		{"no description, before a bad list", `{"name":"n","cc_list":["none"],"sortkey":0}`, CodeRequired},
		{"minimal", `{"name":"n","description":"d"}`, 0},
		{"nothing", `{}`, CodeRequired},
		{"name before description", `{"name":"","description":""}`, CodeRequired},
		{"name null", `{"name":null,"description":"d"}`, CodeRequired},
		{"name 0", `{"name":"0","description":"d"}`, CodeRequired},
		{"name false", `{"name":false,"description":"d"}`, CodeRequired},
		{"name number", `{"name":5,"description":"d"}`, 0},
		{"name array", `{"name":["a"],"description":"d"}`, CodeBadParameter},
		{"name object", `{"name":{"a":1},"description":"d"}`, CodeBadParameter},
		{"name blank inside", `{"name":"two words","description":"d"}`, CodeTypeName},
		{"name comma", `{"name":"a,b","description":"d"}`, CodeTypeName},
		{"name blank", `{"name":"  ","description":"d"}`, CodeTypeName},
		{"name 50", `{"name":"` + strings.Repeat("é", 50) + `","description":"d"}`, 0},
		{"name 51", `{"name":"` + strings.Repeat("é", 51) + `","description":"d"}`, CodeTypeName},
		{"description blank", `{"name":"n","description":"   "}`, CodeTypeText},
		{"target_type", `{"name":"n","description":"d","target_type":"Bug"}`, CodeTargetType},
		{"target_type null", `{"name":"n","description":"d","target_type":null}`, 0},
		{"sortkey 0", `{"name":"n","description":"d","sortkey":0}`, CodeSortkey},
		{"sortkey 1", `{"name":"n","description":"d","sortkey":1}`, 0},
		{"sortkey 32767", `{"name":"n","description":"d","sortkey":32767}`, 0},
		{"sortkey 32768", `{"name":"n","description":"d","sortkey":32768}`, CodeSortkey},
		{"sortkey text", `{"name":"n","description":"d","sortkey":"007"}`, 0},
		{"sortkey blank", `{"name":"n","description":"d","sortkey":" 7 "}`, CodeSortkey},
		{"sortkey float", `{"name":"n","description":"d","sortkey":5.0}`, 0},
		{"sortkey fraction", `{"name":"n","description":"d","sortkey":1.5}`, CodeSortkey},
		{"sortkey array", `{"name":"n","description":"d","sortkey":[5]}`, CodeSortkey},
		{"sortkey null", `{"name":"n","description":"d","sortkey":null}`, 0},
		{"boolean text", `{"name":"n","description":"d","is_active":"false"}`, 0},
		{"boolean odd", `{"name":"n","description":"d","is_active":"maybe"}`, CodeBadParameter},
		{"boolean array", `{"name":"n","description":"d","is_active":[]}`, CodeBadParameter},
		{"cc_list array", `{"name":"n","description":"d","cc_list":["a@x.example","b@x.example"]}`, 0},
		{"cc_list empty array", `{"name":"n","description":"d","cc_list":[]}`, 0},
		{"cc_list blank address", `{"name":"n","description":"d","cc_list":["a b"]}`, CodeBadAddress},
		{"cc_list long", `{"name":"n","description":"d","cc_list":"` + strings.Repeat("a", 201) + `"}`, CodeCCList},
		{"inclusions names", `{"name":"n","description":"d","inclusions":["P"]}`, 0},
		{"inclusions object", `{"name":"n","description":"d","inclusions":{"P":["c"]}}`, 0},
		{"inclusions text", `{"name":"n","description":"d","inclusions":"P"}`, CodeBadParameter},
		{"inclusions component text", `{"name":"n","description":"d","inclusions":{"P":"c"}}`, CodeBadParameter},
		{"inclusions component null", `{"name":"n","description":"d","inclusions":{"P":null}}`, CodeBadParameter},
		{"exclusions component null", `{"name":"n","description":"d","exclusions":[{"P":null}]}`, CodeBadParameter},
		{"inclusions no component", `{"name":"n","description":"d","inclusions":{"P":[]}}`, 0},
		{"inclusions component true", `{"name":"n","description":"d","inclusions":{"P":[true]}}`, CodeBadParameter},
		{"inclusions component blank", `{"name":"n","description":"d","inclusions":{"P":["c"," "]}}`, CodeRequired},
		{"inclusions component null in the list", `{"name":"n","description":"d","inclusions":{"P":[null]}}`, CodeRequired},
		{"inclusions true", `{"name":"n","description":"d","inclusions":[true]}`, CodeBadParameter},
		{"cc_list array that fits", `{"name":"n","description":"d","cc_list":[` + tenAddresses(19) + `]}`, 0},
		{"cc_list array too long", `{"name":"n","description":"d","cc_list":[` + tenAddresses(20) + `]}`, CodeCCList},
		{"cc_list true", `{"name":"n","description":"d","cc_list":[true]}`, CodeBadAddress},
		{"cc_list object", `{"name":"n","description":"d","cc_list":{"a":1}}`, CodeBadAddress},
		{"inclusions nested", `{"name":"n","description":"d","inclusions":[["P"]]}`, CodeBadParameter},
		{"inclusions empty name", `{"name":"n","description":"d","inclusions":[""]}`, CodeRequired},
		{"order of checks", `{"name":"n","description":"d","sortkey":"x","cc_list":["a b"]}`, CodeBadAddress},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeFlagTypeCreate(members(t, c.body))
			if code := decodeError(t, err); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
		})
	}
}

func TestFlagTypeCreateTranslated(t *testing.T) {
	for _, c := range []struct{ text, want string }{{
		`{"name":" n ","description":"d","cc_list":["a@x.example"," b@x.example"],
			"inclusions":{"P":["c1","c2"],"Q":[]},"exclusions":["R"],"is_active":"false","x_extension":{"k":1.50}}`,
		`{"name":"n","description":"d","inclusions":[{"P":["c1","c2"]},{"Q":[]}],"exclusions":["R"],` +
			`"is_active":0,"is_requestable":1,"is_specifically_requestable":1,"is_multiplicable":1,` +
			`"cc_list":"a@x.example, b@x.example","target_type":"bug","x_extension":{"k":1.50}}`,
	}, {
		`{"name":"n","description":"d"}`,
		`{"name":"n","description":"d","is_active":1,"is_requestable":1,"is_specifically_requestable":1,"is_multiplicable":1,"target_type":"bug"}`,
	}} {
		request, err := DecodeFlagTypeCreate(members(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		request.SetDefaults()
		m, err := request.Members(Bugzilla5())
		if got := string(m.AppendJSON(nil)); err != nil || got != c.want {
			t.Errorf("got  %s\nwant %s (%v)", got, c.want, err)
		}
	}
}

func TestInexpressibleScopeIsRefused(t *testing.T) {
	for product, refused := range map[string]bool{"P": false, "Ünï": false, "My Product": true, "a/b": true, "A+B": true} {
		request := FlagTypeCreate{FlagTypeFields: FlagTypeFields{Inclusions: &Scopes{{Product: product, Components: []string{"c"}}}}}
		_, err := request.Members(Bugzilla5())
		var said *Error
		if got := errors.As(err, &said) && said.Reason == ReasonInexpressive; got != refused {
			t.Errorf("components of %q: refused %v, want %v", product, got, refused)
		}
	}
}

func TestDecodeFlagTypeUpdate(t *testing.T) {
	for _, c := range []struct {
		name, path, body, want string
		code                   int
	}{
		{"path id", "20", `{}`, `{"ids":[20]}`, 0},
		{"leading zeros", "020", `{}`, `{"ids":[20]}`, 0},
		{"path name", "u2", `{}`, `{"names":["u2"]}`, 0},
		{"union of ids", "20", `{"ids":[21,"20"]}`, `{"ids":[20,21]}`, 0},
		{"union of names", "u2", `{"names":["u3"]}`, `{"names":["u2","u3"]}`, 0},
		{"both kinds", "u2", `{"ids":[21],"names":["u3"]}`, `{"ids":[21],"names":["u2","u3"]}`, 0},
		{"one name", "20", `{"names":"u3"}`, `{"ids":[20],"names":["u3"]}`, 0},
		{"ids text", "20", `{"ids":["abc"]}`, "", CodeNotNumeric},
		{"ids nested", "20", `{"ids":[[20]]}`, "", CodeNotNumeric},
		{"ids null", "20", `{"ids":null}`, "", CodeRequired},
		{"ids true", "20", `{"ids":[true]}`, "", CodeNotNumeric},
		{"ids null after text", "20", `{"ids":["x",null]}`, "", CodeNotNumeric},
		{"ids text after null", "20", `{"ids":[null,"x"]}`, "", CodeRequired},
		{"names true", "20", `{"names":[true]}`, "", CodeBadParameter},
		{"names null", "u2", `{"names":null}`, "", CodeRequired},
		{"names null beside an id", "20", `{"names":null}`, `{"ids":[20]}`, 0},
		{"ids null beside a name", "u2", `{"ids":null}`, `{"names":["u2"]}`, 0},
		{"both null", "20", `{"names":null,"ids":null}`, "", CodeRequired},
		{"huge id", "99999999999999999999", `{}`, "", CodeNotFound},
		{"name null", "20", `{"name":null}`, "", CodeTypeName},
		{"name empty", "20", `{"name":""}`, "", CodeTypeName},
		{"description empty", "20", `{"description":""}`, "", CodeTypeText},
		{"sortkey null", "20", `{"sortkey":null}`, "", CodeSortkey},
		{"active null", "20", `{"is_active":null}`, `{"is_active":0,"ids":[20]}`, 0},
		{"group null", "20", `{"grant_group":null}`, `{"grant_group":"","ids":[20]}`, 0},
		{"group 0", "20", `{"grant_group":"0","request_group":0}`, `{"grant_group":"","request_group":"","ids":[20]}`, 0},
		{"group with blanks", "20", `{"grant_group":" g "}`, `{"grant_group":"g","ids":[20]}`, 0},
		{"group blank", "20", `{"grant_group":"  ","request_group":" 0"}`, `{"grant_group":"  ","request_group":" 0","ids":[20]}`, 0},
		{"inclusions null", "20", `{"inclusions":null}`, "", CodeUnknownField},
		{"inclusions component null", "20", `{"inclusions":{"P":null}}`, "", CodeBadParameter},
		{"inclusions null among fields", "20", `{"inclusions":null,"grant_group":[],"sortkey":"x"}`, "", CodeNotFound},
		{"unknown kept", "20", `{"target_type":"bug"}`, `{"ids":[20],"target_type":"bug"}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := DecodeFlagTypeUpdate(c.path, members(t, c.body))
			if code := decodeError(t, err); code != c.code {
				t.Fatalf("code %d, want %d", code, c.code)
			}
			if err != nil {
				return
			}
			m, err := request.Members(Bugzilla5())
			if got := string(m.AppendJSON(nil)); err != nil || got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestParseBool(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `false`: false, `1`: true, `0`: false, `0.0`: false, `2`: true, `"1"`: true, `"0"`: false,
		`"true"`: true, `"FALSE"`: false, `"on"`: true, `"off"`: false, `"yes"`: true, `"no"`: false, `""`: false, `null`: false,
		`"2"`: true, `" -1 "`: true, `"1e3"`: true, `"0.00"`: false,
	} {
		if got, ok := ParseBool([]byte(text)); !ok || got != want {
			t.Errorf("ParseBool(%s) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{`[]`, `{}`, `"maybe"`, `[true]`, `"1e999"`} {
		if _, ok := ParseBool([]byte(text)); ok {
			t.Errorf("ParseBool(%s) is accepted", text)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for status, codes := range map[int][]int{
		404: {51, 101, CodeNoResource}, 401: {102, 106, 109, 110, 113, 115, 120, 300, 304, 410, 504, 505},
		400: {0, 50, 52, 100, 299, 305, CodeUnknownField, 200400}, 500: {100500, CodeInternal}, 429: {CodeRateLimited}, 503: {CodeUnavailable},
	} {
		for _, code := range codes {
			if got := StatusOf(code); got != status {
				t.Errorf("code %d has the status %d, want %d", code, got, status)
			}
		}
	}
}

func TestDialectOfVersion(t *testing.T) {
	for version, want := range map[string]string{
		"5.2+": "bugzilla-5", "5.2": "bugzilla-5", "5.0.4.1+": "bugzilla-5", "5.0.6": "bugzilla-5", "": "bugzilla-5",
		"20240101.1": "bmo", "5.1.2": "bmo", "5.3.1": "bmo", "5.9+": "bmo", "5.9.1": "bmo", "5.10": "bugzilla-5", "6.0": "bmo", "4.4.13": "bugzilla-5",
	} {
		if got := DialectOfVersion(version).Name; got != want {
			t.Errorf("version %q is %s, want %s", version, got, want)
		}
	}
}

func TestStabilize(t *testing.T) {
	one := NewDocument([]byte(`{"attachment":[],"bug":[{"name":"b","inclusions":["y","x"],"id":2},{"id":1,"name":"a"}]}`))
	other := NewDocument([]byte(`{"bug":[{"id":2,"inclusions":["x","y"],"name":"b"},{"name":"a","id":1}],"attachment":[]}`))
	for _, reply := range []*Document{one, other} {
		if err := reply.Stabilize(); err != nil {
			t.Fatal(err)
		}
	}
	if string(one.text) != string(other.text) || one.ETag != other.ETag || !strings.HasPrefix(one.ETag, `"`) {
		t.Errorf("two orders give\n%s %s\n%s %s", one.text, one.ETag, other.text, other.ETag)
	}
	if !strings.Contains(string(one.text), `"id":2`) || strings.Index(string(one.text), `"id":2`) > strings.Index(string(one.text), `"id":1`) {
		t.Errorf("the order of the flag types changed: %s", one.text)
	}
	for _, text := range []string{`{}`, `{"bug":[]}`, `{"bug":{},"attachment":[]}`, `[]`} {
		if err := NewDocument([]byte(text)).Stabilize(); err == nil {
			t.Errorf("%s passes for flag types", text)
		}
	}
}

// TestLongSelection would not come to its end if a list took time by its square: a list is read before the caller is authenticated.
func TestLongSelection(t *testing.T) {
	const many = 400_000
	var ids, names strings.Builder
	for n := range many {
		fmt.Fprintf(&ids, "%d,%d,", n+1, n+1)
		fmt.Fprintf(&names, `"n%d","n%d",`, n, n)
	}
	request, err := DecodeFlagTypeUpdate("1", members(t, `{"ids":[`+ids.String()+`1],"names":[`+names.String()+`"n0"]}`))
	if err != nil || len(request.IDs) != many || len(request.Names) != many {
		t.Errorf("%d ids and %d names: %v, want %d of each", len(request.IDs), len(request.Names), err, many)
	}
}

func TestIsAPIKey(t *testing.T) {
	key := "AdminKey" + strings.Repeat("0", 32)
	cases := map[string]bool{
		key: true, strings.ToLower(key): true, strings.Repeat("z", 40): true,
		"": false, key[1:]: false, key + "0": false, key[1:] + "-": false, key[1:] + "@": false, key[1:] + "[": false,
		key[1:] + "`": false, key[1:] + "{": false, key[1:] + " ": false, key[2:] + "é": false,
	}
	for text, want := range cases {
		if got := IsAPIKey(text); got != want {
			t.Errorf("IsAPIKey(%q) = %v", text, got)
		}
	}
}
