package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// cleanSegments says by other means than the code what a path means: its segments with their escapes taken off once, dot
// segments resolved by path.Clean. Names stand as numbers meanwhile, so that nothing in them counts.
func cleanSegments(escaped string) (segments []string, ok bool) {
	var names, shape []string
	for piece := range strings.SplitSeq(escaped, "/") {
		name, err := url.PathUnescape(piece)
		if err != nil {
			return nil, false
		}
		if name != "" && name != "." && name != ".." {
			names = append(names, name)
			name = strconv.Itoa(len(names) - 1)
		}
		shape = append(shape, name)
	}
	clean := path.Clean(strings.TrimLeft(strings.Join(shape, "/"), "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, false
	}
	for piece := range strings.SplitSeq(clean, "/") {
		if i, err := strconv.Atoi(piece); err == nil {
			segments = append(segments, names[i])
		}
	}
	return segments, true
}

// FuzzPathSegments holds that a path is refused, or keeps exactly the names that path.Clean leaves of it; and that what it
// is taken for does not change when it is written with other escapes.
func FuzzPathSegments(f *testing.F) {
	for _, seed := range []string{
		"/rest/flag_type/A%2FB/C%20D", "//rest/./x/../bug//5/attachment/", "/..", "/a/../..", "/%2e%2E/a", "/a/%2E/", "/%", "/a%2", "/%zz/..",
		"/%2F..%2F..", "/rest/flag_type/..%20", "/A+B&C;d=e", "/%00", "/%FF/%fe", "/rest.cgi/%66lag_type/%e2%82%ac", `/a\..\b`, "/%252e%252e/",
		"/rest/./bug/x/../5/attachment", "/rest/%2e/bug/x/%2E%2e/5/", "/rest/flag_type/A+B%20&%20C", "/a/b/..", "/a/.", "/", "", "/a/b//c", "/%4", "/%41%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		if !strings.HasPrefix(escaped, "/") {
			if _, err := normalPath(escaped); err == nil && escaped != "" {
				t.Fatalf("%q is taken for a path", escaped)
			}
			escaped = "/" + escaped
		}
		if read, err := url.ParseRequestURI(escaped); err == nil {
			escaped = read.EscapedPath() // in which net/http gives it
		} else if strings.ContainsFunc(escaped, unicode.IsControl) {
			return // net/http refuses it
		}
		normal, err := normalPath(escaped)
		want, ok := cleanSegments(escaped)
		if (err == nil) != ok {
			t.Fatalf("normalPath(%q) = %q, %v, but acceptable: %v", escaped, normal, err, ok)
		}
		if !ok {
			return
		}
		if again, err := normalPath(normal); err != nil || again != normal {
			t.Fatalf("normalPath(%q) = %q, and again %q, %v", escaped, normal, again, err)
		}
		got, ok := cleanSegments(normal)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("normalPath(%q) = %q of %q, want %q", escaped, normal, got, want)
		}
		var rebuilt strings.Builder
		for _, name := range want {
			rebuilt.WriteString("/" + url.PathEscape(name))
		}
		other, err := normalPath(rebuilt.String())
		if dots := slices.Contains(want, ".") || slices.Contains(want, ".."); !dots && len(want) > 0 && err != nil {
			t.Fatalf("normalPath(%q) fails: %v", rebuilt.String(), err)
		}
		// To some servers a plain semicolon begins parameters, and an escaped one does not.
		if !strings.Contains(normal, ";") && misread(normal, true) != misread(other, true) {
			t.Fatalf("%q and %q are not taken for the same", normal, other)
		}
	})
}

// bare is a request context that is good for nothing but reading what a client sends.
func bare(t *testing.T, operation mapping.Operation, r *http.Request) *requestContext {
	t.Helper()
	if r == nil {
		r = httptest.NewRequest("PUT", "/", nil)
	}
	options := Options{}
	options.Limits.Limits = options.Limits.Limits.WithDefaults()
	rc := (&Server{options: options, bodies: &memory{total: 1 << 30}, replies: &memory{}}).newContext(httptest.NewRecorder(), r)
	rc.record.Operation = operation
	return rc
}

// refusal gives the error that a client would see of an error of reading, which must blame the client.
func refusal(t *testing.T, x *requestContext, err error) *mapping.Error {
	t.Helper()
	var refused *mapping.Error
	if !errors.As(x.bodyError(err), &refused) || refused.Status < 400 || refused.Status > 499 {
		t.Fatalf("not the error of a bad request: %v", err)
	}
	return refused
}

// FuzzForm holds that a form is refused, or says the same in a body as in a query, and the same as net/url reads where
// that understands it.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"a=1&b=2", "a=1;a=2&b", "ids=1&ids=2&names=x", "data=YQ+/%3D&file_name=a+b", "%", "a=%zz&%41=%42", "=&&;=;", "a=%ff", "a=\xff",
		"inclusions=P", "cc_list=a%40example.com", "a=b=c", "\u00e9=%C3%A9", "a=%00",
	} {
		f.Add([]byte(seed))
	}
	f.Add(bytes.Repeat([]byte("k"), freeShare+1))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, ok := parseQuery(string(text))
		x := bare(t, mapping.OpUpdateFlagTypes, nil)
		members, err := x.urlencoded(bytes.NewReader(text))
		switch {
		case err != nil && ok && len(list) <= maxFormFields && !slices.ContainsFunc(list, isNameless):
			t.Fatalf("%q is fine in a query and no body: %v", text, err)
		case err == nil && !ok:
			t.Fatalf("%q is not UTF-8, but %s", text, members.AppendJSON(nil))
		case err != nil:
			refusal(t, x, err)
			return
		}
		want := list.members(true)
		if !reflect.DeepEqual(members, want) {
			t.Fatalf("%q: %s in a body, %s in a query", text, members.AppendJSON(nil), want.AppendJSON(nil))
		}
		if _, err := mapping.ParseMembers(members.AppendJSON(nil)); err != nil {
			t.Fatalf("%q became %q: %v", text, members.AppendJSON(nil), err)
		}
		sameAsURL(t, string(text), list)
	})
}

// isNameless tells a field whose name no form may have, since it is most likely UTF-16.
func isNameless(p parameter) bool { return strings.ContainsRune(p.name, 0) }

// sameAsURL compares a query with what net/url makes of it. It knows no semicolons and no stray percent signs, and turns
// a plus of base64 to a blank.
func sameAsURL(t *testing.T, text string, list parameters) {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil || strings.Contains(text, "data") || strings.Contains(text, "%") && len(values["data"]) > 0 {
		return
	}
	got := url.Values{}
	for _, each := range list {
		got.Add(each.name, each.value)
	}
	if !reflect.DeepEqual(got, values) {
		t.Fatalf("%q: %v, want %v", text, got, values)
	}
}

// FuzzFormPayload holds that a form with an attachment is refused, or keeps its payload, in both kinds of form.
func FuzzFormPayload(f *testing.F) {
	const part = "--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\nc29tZQ==\r\n--b--\r\n"
	for _, seed := range []string{
		part, "--b\r\n\r\nx\r\n--b--", "--b", "--b--", "", strings.Replace(part, "c29t", "%", 1), strings.TrimSuffix(part, "--\r\n"),
		"data=YQ==&data=Yg==", "data=%", "data=YQ%3d%3d;file_name=f", "data=a b", strings.Replace(part, "name=\"data\"", "name=\"x\"; filename=\"y\"", 1),
		"--b\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\n\xff\r\n--b--", "--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3\r\n--b--",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func(*requestContext) (mapping.Members, error){
			func(x *requestContext) (mapping.Members, error) { return x.urlencoded(bytes.NewReader(text)) },
			func(x *requestContext) (mapping.Members, error) { return x.multipart(bytes.NewReader(text), "b") },
		} {
			x := bare(t, mapping.OpCreateAttachment, httptest.NewRequest(http.MethodPost, "/", nil))
			members, err := read(x)
			if err != nil {
				refusal(t, x, err)
			} else {
				checkPayload(t, x, members)
			}
			if err := jsonblob.CloseBlobs(x.blobs); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func checkPayload(t *testing.T, x *requestContext, members mapping.Members) {
	t.Helper()
	request, err := mapping.DecodeAttachmentCreate("5", members, x.blobs)
	if err != nil {
		refusal(t, x, err)
	}
	if members.Get("data") != nil && len(x.blobs) > 0 && (request.Data == nil || request.Data != x.blobs[0]) {
		t.Fatalf("the payload %v became %v", x.blobs, request.Data)
	}
	joined, err := jsonblob.Join(members.AppendJSON(nil), x.blobs)
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if _, err := joined.WriteTo(&whole); err != nil || !utf8.Valid(whole.Bytes()) {
		t.Fatalf("%q: %v", whole.Bytes(), err)
	}
}

// secret is a credential in every request of FuzzCredentials.
const secret = "Zq7Xv2-credential-Wm4"

// credentialMembers are the members that real clients put it in (tracker-behaviour.md section 1, Credentials).
var credentialMembers = []string{
	"api_key", "Bugzilla_api_key", "login", "Bugzilla_login", "password", "Bugzilla_password", "token", "Bugzilla_token",
}

// FuzzCredentials holds that no credential is left among the members that are sent on, and none is in an error.
func FuzzCredentials(f *testing.F) {
	for _, seed := range [][3]string{
		{"", `"summary":"s"`, ""}, {"api_key=x&Bugzilla_token=y", `"login":"a","password":"b"`, "Bearer z"}, {"api_key=", `"token":null`, "Basic eA=="},
		{"login=a;password=b", `"Bugzilla_login":5,"Bugzilla_password":[]`, "Bearer"}, {"a=1&a=2", `"token":{}`, ""}, {"%61pi_key=x", `"api_\u006bey":"x"`, ""},
		{"callback=f", `"x":{"api_key":"y"}`, ""}, {"password=%ff", `"password":"`, ""}, {"ids=5&ids=6", `"ids":[7]`, "Token t"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, query, inner, authorization string) {
		list, ok := parseQuery(query)
		if !ok || strings.Contains(query+inner+authorization, secret) {
			return
		}
		for _, name := range credentialMembers {
			r := httptest.NewRequest("PUT", "/rest/bug/attachment/5", strings.NewReader(`{"`+name+`":"`+secret+`",`+inner+"}"))
			r.Header.Set("Authorization", authorization)
			x := bare(t, mapping.OpUpdateAttachments, r)
			x.query = list
			members, err := x.members()
			if err != nil {
				if told := refusal(t, x, err); strings.Contains(told.Error(), secret) {
					t.Fatalf("an error tells the credential: %v", told)
				}
				continue
			}
			if slices.ContainsFunc(members, func(m mapping.Member) bool { return slices.Contains(credentialMembers, m.Name) }) {
				t.Fatalf("a credential is left: %s", members.AppendJSON(nil))
			}
			if bytes.Contains(members.AppendJSON(nil), []byte(secret)) {
				t.Fatalf("the credential is left: %s", members.AppendJSON(nil))
			}
		}
	})
}

// However the path of an operation is spelled, it is routed as one or does not pass.
func FuzzMisread(f *testing.F) {
	f.Add(uint8(0), uint16(9), uint8(0), uint8(1))
	f.Add(uint8(2), uint16(20), uint8(5), uint8(0))
	operations := []string{"/rest/flag_type", "/rest/flag_types/5", "/rest/flag_type/P/C", "/rest.cgi/bug/7/attachment", "/rest/bug/attachment/1"}
	odd := []string{"%20", "%0a", "%09", "%c2%a0", "%00", ";a", ";", ".", "%ff", "%e2%80%8b"}
	slashes := []string{"/", "%2F", "%5C", "%c0%af", "%252f", "%e0%80%af"}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, what, slash uint8) {
		path := operations[int(which)%len(operations)]
		segments := strings.Split(path[1:], "/")
		i := int(at) % len(segments)
		segments[i] += odd[int(what)%len(odd)]
		spelled := "/" + strings.Join(segments[:i+1], "/")
		if rest := segments[i+1:]; len(rest) > 0 {
			spelled += slashes[int(slash)%len(slashes)] + strings.Join(rest, "/")
		}
		normal, err := normalPath(spelled)
		if err == nil && !isRouted(normal) && !misread(normal, true) {
			t.Fatalf("%s passes", normal)
		}
	})
}

// isRouted reports whether a normal path has the segments of an operation as they are written in interface.md.
func isRouted(path string) bool {
	s := strings.Split(strings.TrimSuffix(path, "/"), "/")[1:]
	if len(s) < 2 || len(s) > 4 || s[0] != "rest" && s[0] != "rest.cgi" {
		return false
	}
	return strings.TrimSuffix(s[1], "s") == "flag_type" || s[1] == "bug" && len(s) == 4 && slices.Contains(s[2:], "attachment")
}
