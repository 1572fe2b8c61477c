package recording_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"portico/upstream/recording"
)

const secret = "S3cret/Key+with%odd&bits<äö>"

func seen() recording.Seen {
	return recording.Seen{
		Method: "GET", Target: "/rest/bug/1/attachment", Header: http.Header{"Accept": {"*/*"}, "X-Forwarded-For": {"192.0.2.7"}},
		Status: 200, Answer: http.Header{"Content-Type": {"application/json; charset=UTF-8"}, "Server": {"inside.example"}},
		Content: []byte(`{"bugs":{"1":[]},"attachments":{}}`),
	}
}

// written gives the line of a file that an exchange becomes.
func written(t testing.TB, e recording.Exchange) string {
	t.Helper()
	var text bytes.Buffer
	if err := recording.NewWriter(&text).Write(e); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// shows tells how a text shows a secret, as it stands or in one of the codes that bodies and queries have.
func shows(line, secret string) string {
	var decoded strings.Builder
	decoded.WriteString(line + "\n" + html.UnescapeString(line) + "\n")
	var fields any
	if json.Unmarshal([]byte(line), &fields) == nil {
		spread(&decoded, fields)
	}
	all := decoded.String()
	for _, spelling := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(quote(secret), `"`), strings.Trim(quoteMore(secret), `"`), mark(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		escapeAll(secret), strings.Trim(escapeJSON(secret), `"`),
	} {
		if spelling != "" && strings.Contains(all, spelling) {
			return spelling
		}
	}
	return ""
}

// spread writes all texts of a JSON value out, and what they are when they are JSON themselves.
func spread(out *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, each := range v {
			out.WriteString(name + "\n")
			spread(out, each)
		}
	case []any:
		for _, each := range v {
			spread(out, each)
		}
	case string:
		out.WriteString(v + "\n")
		var inner any
		if len(v) > 1 && json.Unmarshal([]byte(v), &inner) == nil {
			spread(out, inner)
		}
	}
}

// TestNoCredentialSurvives sends one secret in every form, and each placeholder is the same.
func TestNoCredentialSurvives(t *testing.T) {
	redactor := recording.NewRedactor(1 << 10)
	for _, form := range forms() {
		s := seen()
		form.put(&s, secret)
		plain, _ := url.QueryUnescape(s.Target)
		raw := fmt.Sprintln(s.Target, plain, s.Header, string(s.Body), string(s.Content), s.Answer)
		if shows(raw, secret) == "" {
			t.Errorf("%s: the secret is not even in the request: %s", form.name, raw)
		}
		e := redactor.Redact(s)
		line := written(t, e)
		if how := shows(line, secret); how != "" {
			t.Errorf("%s: %q is in %s", form.name, how, line)
		}
		for _, address := range []string{"192.0.2.7", "inside.example", "tracker.example"} {
			if strings.Contains(line, address) {
				t.Errorf("%s: the address %s is in %s", form.name, address, line)
			}
		}
	}
}

// TestOneCallerOnePlaceholder: a key is the same in all forms, and another key is another.
func TestOneCallerOnePlaceholder(t *testing.T) {
	redactor := recording.NewRedactor(1 << 10)
	for _, form := range named("api_key") {
		s := seen()
		form.put(&s, secret)
		e := redactor.Redact(s)
		if strings.Contains(form.name, "broken") {
			if e.Unsendable == "" || e.Request.Body != nil {
				t.Errorf("%s: is kept: %s", form.name, e.Request.Body)
			}
			continue
		}
		text := e.Request.Path + string(e.Request.Body)
		if !strings.Contains(text, "{{caller-") || len(e.Callers) == 0 || e.Unsendable != "" {
			t.Errorf("%s: %s, callers %v, unsendable %q", form.name, text, e.Callers, e.Unsendable)
		}
		if one := strings.Contains(form.name, "list") || strings.Contains(form.name, "pieces"); !one && e.Callers[0] != "caller-1" {
			t.Errorf("%s: is called %v", form.name, e.Callers)
		}
	}
	s := seen()
	s.Header.Set("Authorization", "Bearer "+secret)
	s.Target += "?api_key=another"
	if e := redactor.Redact(s); e.Request.Headers["Authorization"] != "Bearer {{caller-1}}" || strings.HasSuffix(e.Request.Path, "caller-1}}") {
		t.Errorf("got %s %v", e.Request.Path, e.Request.Headers)
	}
}

// TestRedactionKeepsTheRest: everything else stays as it was sent, to the byte.
func TestRedactionKeepsTheRest(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, want string }{
		"JSON":  {"", "{ \"a\" : 1.50,\n \"token\":\"SECRETSECRET\",\t\"b\":\"\\u0041\\/\" } ", "{ \"a\" : 1.50,\n \"token\":\"{{caller-1}}\",\t\"b\":\"\\u0041\\/\" } "},
		"empty": {"", `{"api_key":"","password":null,"login":""}`, `{"api_key":"","password":null,"login":""}`},
		"login": {"", `{"login":"dev@Example.com","password":"p","names":["DEV@example.com","o@x.example"],"Bugzilla_login":"me"}`,
			`{"login":"{{address-1}}","password":"{{caller-1}}","names":["{{address-1}}","{{address-2}}"],"Bugzilla_login":"{{login-1}}"}`},
		"form":       {"application/x-www-form-urlencoded", "a=%41+b&api_key=k%2B1;c&&d=", "a=%41+b&api_key={{caller-1}};c&&d="},
		"XML":        {"", "<a>\n<member><name>token</name><value> <i4>5</i4></value></member></a>\n", "<a>\n<member><name>token</name><value><string>{{caller-1}}</string></value></member></a>\n"},
		"a number":   {"", `{"token":12345678,"x":[12345678]}`, `{"token":"{{caller-1}}","x":[{{caller-1}}]}`},
		"small data": {"", `{"data":"aGVsbG8K"}`, `{"data":"aGVsbG8K"}`},
		"blank":      {"", " \n", " \n"},
	} {
		s := seen()
		body(&s, c.kind, c.body)
		if e := recording.NewRedactor(1 << 10).Redact(s); string(e.Request.Body) != c.want || e.Unsendable != "" {
			t.Errorf("%s: got %q (%s), want %q", name, e.Request.Body, e.Unsendable, c.want)
		}
	}
}

// TestPayloads: long ones are left out with their digest, of requests and of answers.
func TestPayloads(t *testing.T) {
	content := bytes.Repeat([]byte("payload "), 1000)
	coded := base64.StdEncoding.EncodeToString(content)
	s := seen()
	body(&s, "", `{"data":"`+coded+`","summary":"x"}`)
	s.Content = []byte(`{"attachments":{"1":{"data":"` + coded + `","size":8000}}}`)
	e := recording.NewRedactor(1 << 10).Redact(s)
	if e.Unsendable == "" || len(e.Request.Body) > 200 || len(e.Response.Body) > 200 || !strings.Contains(string(e.Response.Body), " 8000}}") {
		t.Errorf("got %s, %s, unsendable %q", e.Request.Body, e.Response.Body, e.Unsendable)
	}
	if e := recording.NewRedactor(1 << 20).Redact(s); e.Unsendable != "" || !bytes.Equal(e.Request.Body, s.Body) || !bytes.Equal(e.Response.Body, s.Content) {
		t.Error("payloads within the limit are not kept")
	}
}

// TestWhatIsNotKept: what cannot be read goes, and it is said.
func TestWhatIsNotKept(t *testing.T) {
	for name, change := range map[string]func(*recording.Seen){
		"compressed":             func(s *recording.Seen) { body(s, "", "{}"); s.Header.Set("Content-Encoding", "gzip") },
		"plain text":             func(s *recording.Seen) { body(s, "text/plain", "my key is "+secret) },
		"cut":                    func(s *recording.Seen) { body(s, "", "{}"); s.BodyCut = 10 },
		"two values":             func(s *recording.Seen) { body(s, "", `{} {"api_key":"k"}`) },
		"odd name in the query":  func(s *recording.Seen) { s.Target += `?{"api_key":"k"}` },
		"JSON that is none":      func(s *recording.Seen) { s.Target += `?params=[{` },
		"a placeholder":          func(s *recording.Seen) { body(s, "", `{"summary":"{{caller-1}}"}`) },
		"parts without an end":   func(s *recording.Seen) { body(s, "multipart/form-data; boundary=x", "--x\r\nA: b\r\n\r\nc") },
		"parts with a preamble":  func(s *recording.Seen) { parts(s, "token", secret); s.Body = append([]byte(secret+"\r\n"), s.Body...) },
		"parts with an epilogue": func(s *recording.Seen) { parts(s, "token", secret); s.Body = append(s.Body, secret...) },
		"XML with a comment":     func(s *recording.Seen) { body(s, "text/xml", "<a><!-- "+secret+" --></a>") },
		"two keys in headers":    func(s *recording.Seen) { s.Header["X-Bugzilla-Api-Key"] = []string{"a", secret} },
	} {
		s := seen()
		change(&s)
		e := recording.NewRedactor(1 << 10).Redact(s)
		if e.Unsendable == "" {
			t.Errorf("%s: could be sent again: %s %s", name, e.Request.Path, e.Request.Body)
		}
		if line := written(t, e); shows(line, secret) != "" {
			t.Errorf("%s: the secret is in %s", name, line)
		}
	}
}

// TestAnswers: pages and files are not kept, answers that cannot be read neither.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		html       bool
		kept       bool
		digest     bool
	}{
		{"application/json", `{"a":1}`, false, true, false},
		{"application/json", `{"a":`, false, false, false},
		{"text/javascript", `/**/cb({"token":"` + secret + `"})`, false, true, false},
		{"text/xml", `<a><member><name>token</name><value>` + mark(secret) + `</value></member></a>`, false, true, false},
		{"text/html; charset=utf-8", secret, true, false, false},
		{"image/png", secret, false, false, true},
	} {
		s := seen()
		s.Answer.Set("Content-Type", c.kind)
		s.Content = []byte(c.body)
		p := recording.NewRedactor(1 << 10).Redact(s).Response
		if p.HTML != c.html || (len(p.Body) > 0) != c.kept || (p.SHA256 != "") != c.digest || !c.kept && !c.html && p.Size != int64(len(c.body)) {
			t.Errorf("%s %s: got %+v", c.kind, c.body, p)
		}
		if strings.Contains(string(p.Body), secret) {
			t.Errorf("%s: the secret is in %s", c.kind, p.Body)
		}
	}
}

// FuzzRedact sends any text as a credential, in any form, beside any other body, and looks for it in what is kept.
func FuzzRedact(f *testing.F) {
	for i := range forms() {
		f.Add(secret, uint8(i), "")
	}
	f.Add("12345678", uint8(20), `{"size":12345678}`)
	f.Add(`{"a":"b"}`, uint8(21), `{"message":"{\"a\":\"b\"}"}`)
	f.Add("user@host.example", uint8(4), `{"creator":"user@host.example"}`)
	f.Fuzz(func(t *testing.T, secret string, which uint8, answer string) {
		secret = strings.TrimSpace(secret)
		list := forms()
		form := list[int(which)%len(list)]
		if len(secret) < 8 || len(secret) > 4<<10 || !utf8.ValidString(secret) || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
			return
		}
		if strings.HasPrefix(form.name, "Auth") || strings.Contains(form.name, "cookie") && strings.ContainsAny(secret, "=;, \"") {
			return
		}
		s := seen()
		if answer != "" {
			s.Content = []byte(answer)
		}
		plain := written(t, recording.NewRedactor(1<<10).Redact(s))
		form.put(&s, secret)
		// What stands in every line cannot be told from the secret.
		nothing := seen()
		form.put(&nothing, "\x01unlikely\x01")
		if line := written(t, recording.NewRedactor(1<<10).Redact(nothing)); shows(plain, secret) != "" && !strings.Contains(answer, secret) || shows(line, secret) != "" {
			return
		}
		if line := written(t, recording.NewRedactor(1<<10).Redact(s)); shows(line, secret) != "" {
			t.Fatalf("%s shows %q of %q in %s", form.name, shows(line, secret), secret, line)
		}
	})
}

// credentialsOf reads a body by other means than the code and lists the credentials in it.
func credentialsOf(kind string, body []byte) []string {
	var found []string
	var v any
	if json.Unmarshal(body, &v) == nil {
		found = append(found, underNames(v, false)...)
	}
	if media, parameters, err := mime.ParseMediaType(kind); err == nil && media == "multipart/form-data" {
		if form, err := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]).ReadForm(1 << 20); err == nil {
			found = append(found, valuesOf(form.Value)...)
		}
	}
	if values, err := url.ParseQuery(string(body)); err == nil {
		found = append(found, valuesOf(values)...)
	}
	return found
}

func valuesOf(values url.Values) []string {
	var found []string
	for _, name := range parameterNames {
		found = append(found, values[name]...)
	}
	return found
}

// underNames lists all texts below the names of credentials.
func underNames(v any, below bool) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for name, each := range v {
			found = append(found, underNames(each, below || slices.Contains(parameterNames, name))...)
		}
	case []any:
		for _, each := range v {
			found = append(found, underNames(each, below)...)
		}
	case string:
		if below {
			found = append(found, v)
		}
	}
	return found
}

// FuzzRedactBody keeps any body, and looks for credentials that other readers find in it.
func FuzzRedactBody(f *testing.F) {
	for _, form := range forms() {
		s := seen()
		form.put(&s, secret)
		f.Add(s.Header.Get("Content-Type"), s.Body)
	}
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		s := seen()
		body(&s, kind, string(text))
		e := recording.NewRedactor(1 << 10).Redact(s)
		if e.Request.Body == nil {
			return
		}
		frame := written(t, recording.NewRedactor(1<<10).Redact(seen()))
		line := written(t, e)
		for _, credential := range credentialsOf(kind, text) {
			credential = strings.TrimSpace(credential)
			if len(credential) >= 8 && utf8.ValidString(credential) && !strings.Contains(frame, credential) && !strings.Contains("{{caller-1}}{{login-1}}", credential) &&
				strings.Contains(string(e.Request.Body), credential) {
				t.Fatalf("%q is in %s", credential, line)
			}
		}
	})
}

// TestEchoes: a credential that comes back in an answer is taken out of it in any spelling, and where its place cannot be
// found the answer is given up.
func TestEchoes(t *testing.T) {
	basic := func(s *recording.Seen) {
		s.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+secret)))
	}
	inQuery := func(s *recording.Seen) { s.Target = withQuery(s.Target, "token", secret) }
	for name, c := range map[string]struct {
		put              func(*recording.Seen)
		kind, body, want string
	}{
		"escaped in JSON":       {inQuery, "application/json", `{"message":"no ` + strings.Trim(escapeJSON(secret), `"`) + `!"}`, `{"message":"no {{caller-1}}!"}`},
		"name of a member":      {inQuery, "application/json", `{` + quote(secret) + `:1}`, `{"{{caller-1}}":1}`},
		"password of basic":     {basic, "application/json", `{"message":` + quote(secret) + `}`, `{"message":"removed"}`},
		"escaped in XML":        {inQuery, "text/xml", `<a>` + strings.ReplaceAll(mark(secret), "S", "&#83;") + `</a>`, ""},
		"escaped twice in XML":  {inQuery, "text/xml", `<a>` + mark(mark(secret)) + `</a>`, ""},
		"nothing of it in JSON": {inQuery, "application/json", `{"message":"S3cret"}`, `{"message":"S3cret"}`},
	} {
		s := seen()
		c.put(&s)
		s.Answer.Set("Content-Type", c.kind)
		s.Content = []byte(c.body)
		p := recording.NewRedactor(1 << 10).Redact(s).Response
		if string(p.Body) != c.want || (p.Size > 0) != (c.want == "") {
			t.Errorf("%s: got %q of %d bytes, want %q", name, p.Body, p.Size, c.want)
		}
	}
}
