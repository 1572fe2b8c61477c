package recording_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"mime"
	"mime/multipart"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"portico/upstream/recording"
)

const secret = "S3cret/Key+with%odd&bits<äö>"

func seen() recording.Exchange {
	return recording.Exchange{
		Request: recording.Request{
			Method: "GET", Path: "/rest/bug/1/attachment", Headers: map[string]string{"Accept": "*/*", "X-Forwarded-For": "192.0.2.7"},
		},
		Response: &recording.Response{
			Status: 200, Headers: map[string]string{"content-type": "application/json; charset=UTF-8", "server": "inside.example"},
			Body: []byte(`{"bugs":{"1":[]},"attachments":{}}`),
		},
	}
}

// written gives the line of a file that an exchange becomes.
func written(t testing.TB, e recording.Exchange) string {
	t.Helper()
	var text bytes.Buffer
	must(t, recording.Write(&text, e))
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
		plain, _ := url.QueryUnescape(s.Request.Path)
		raw := fmt.Sprintln(s.Request.Path, plain, s.Request.Headers, string(s.Request.Body), string(s.Response.Body), s.Response.Headers)
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
		if strings.Contains(form.name, "broken") || strings.Contains(form.name, "parts") {
			if e.Unsendable == "" || !strings.Contains(string(e.Request.Body), "{{digest-") {
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
	s.Request.Headers["Authorization"] = "Bearer " + secret
	s.Request.Path += "?api_key=another"
	if e := redactor.Redact(s); e.Request.Headers["Authorization"] != "Bearer {{caller-1}}" || strings.HasSuffix(e.Request.Path, "caller-1}}") {
		t.Errorf("got %s %v", e.Request.Path, e.Request.Headers)
	}
}

// TestRedactionKeepsTheRest: everything else stays as it was sent, to the byte.
func TestRedactionKeepsTheRest(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, want string }{
		"JSON":  {"", "{ \"size\" : 1.50,\n \"token\":\"SECRETSECRET\",\t\"name\":\"\\u0041\\/\" } ", "{ \"size\" : 1.50,\n \"token\":\"{{caller-1}}\",\t\"name\":\"\\u0041\\/\" } "},
		"empty": {"", `{"api_key":"","password":null,"login":"","unknown":[true,null,""]}`, `{"api_key":"","password":null,"login":"","unknown":[true,null,""]}`},
		"login": {"", `{"login":"dev@Example.com","password":"p","names":["DEV@example.com","o@x.example"],"Bugzilla_login":"me"}`,
			`{"login":"{{address-1}}","password":"{{caller-1}}","names":["{{address-1}}","{{address-2}}"],"Bugzilla_login":"{{login-1}}"}`},
		"form": {"application/x-www-form-urlencoded", "name=%41+b%3D&api_key=k%2B1;summary=c&&ids[]=1", "name=%41+b%3D&api_key={{caller-1}};summary=c&&ids[]=1"},
		"XML": {"text/xml", "<?xml version='1.0'?>\n<methodCall>\n<methodName>Bug.get</methodName><params><param><value><struct><member><name>token</name><value> <i4>5</i4></value></member></struct></value></param></params></methodCall>\n",
			"<?xml version='1.0'?>\n<methodCall>\n<methodName>Bug.get</methodName><params><param><value><struct><member><name>token</name><value> <i4>{{caller-1}}</i4></value></member></struct></value></param></params></methodCall>\n"},
		"a number":    {"", `{"token":12345678,"ids":[12345678,7]}`, `{"token":"{{caller-1}}","ids":["{{caller-1}}",7]}`},
		"small data":  {"", `{"data":"aGVsbG8K"}`, `{"data":"aGVsbG8K"}`},
		"products":    {"", `{"inclusions":{"Firefox 2":["A/B"]},"bugs":{"1":["alias"]}}`, `{"inclusions":{"Firefox 2":["A/B"]},"bugs":{"1":["alias"]}}`},
		"a short one": {"", `{"password":"hunter2","confirm":"hunter2"}`, `{"password":"{{caller-1}}","confirm":"{{caller-1}}"}`},
		"blank":       {"", " \n", " \n"},
	} {
		s := seen()
		body(&s, c.kind, c.body)
		if e := recording.NewRedactor(1 << 10).Redact(s); string(e.Request.Body) != c.want || e.Unsendable != "" {
			t.Errorf("%s: got %q (%s), want %q", name, e.Request.Body, e.Unsendable, c.want)
		}
	}
}

var digest = regexp.MustCompile(`\{\{digest-[0-9a-f]{16}-\d+\}\}`)

// TestUnknownNames: what stands under a name that is not known is a digest with its size, equal for equal values of one file only. The
// request cannot be sent again.
func TestUnknownNames(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, want string }{
		"JSON":    {"", `{"nonce":"S3cret","name":"n","deep":{"nonce":["S3cret",17]}}`, `{"nonce":"D","name":"n","deep":{"nonce":["D","D"]}}`},
		"alone":   {"", `"S3cret"`, `"D"`},
		"form":    {"application/x-www-form-urlencoded", "nonce=S3cret&S3cret&name=n&<>=S3cret", "nonce=D&D&name=n&D"},
		"JSONRPC": {"", `{"method":"Bug.get","params":["S3cret"]}`, `{"method":"Bug.get","params":["D"]}`},
		"XML": {"text/xml", "<methodCall><methodName>Bug.get</methodName><params><param><value><string>S3cret</string></value></param></params></methodCall>",
			"<methodCall><methodName>Bug.get</methodName><params><param><value><string>D</string></value></param></params></methodCall>"},
		"attributes": {"text/xml", "<methodCall key='S3cret'><methodName>a</methodName></methodCall>", "D"},
		"CDATA":      {"text/xml", "<methodCall><methodName><![CDATA[S3cret]]></methodName></methodCall>", "D"},
		"escaped =":  {"application/x-www-form-urlencoded", "S3cret%3D&name=n", "D&name=n"},
		"other XML":  {"text/xml", "<bugs><name>n</name></bugs>", "D"},
		"text":       {"text/plain", "name=S3cret", "D"},
	} {
		s := seen()
		body(&s, c.kind, c.body)
		redactor := recording.NewRedactor(1 << 10)
		e := redactor.Redact(s)
		if got := digest.ReplaceAllString(string(e.Request.Body), "D"); got != c.want || e.Unsendable == "" {
			t.Errorf("%s: got %q (%s), want %q", name, got, e.Unsendable, c.want)
		}
		if again := redactor.Redact(s); string(again.Request.Body) != string(e.Request.Body) {
			t.Errorf("%s: %s became %s", name, e.Request.Body, again.Request.Body)
		}
		if other := recording.NewRedactor(1 << 10).Redact(s); string(other.Request.Body) == string(e.Request.Body) {
			t.Errorf("%s: two files have the same digests", name)
		}
	}
	s := seen()
	s.Response.Body = []byte(`{"nick":"dev","id":1}`)
	if e := recording.NewRedactor(1 << 10).Redact(s); e.Unsendable != "" || digest.ReplaceAllString(string(e.Response.Body), "D") != `{"nick":"D","id":1}` {
		t.Errorf("a response: %s, unsendable %q", e.Response.Body, e.Unsendable)
	}
}

// TestPayloads: long ones are left out with their digest, of requests and of answers.
func TestPayloads(t *testing.T) {
	content := bytes.Repeat([]byte("payload "), 1000)
	coded := base64.StdEncoding.EncodeToString(content)
	s := seen()
	body(&s, "", `{"data":"`+coded+`","summary":"x"}`)
	s.Response.Body = []byte(`{"attachments":{"1":{"data":"` + coded + `","size":8000}}}`)
	e := recording.NewRedactor(1 << 10).Redact(s)
	if e.Unsendable == "" || len(e.Request.Body) > 200 || len(e.Response.Body) > 200 || !strings.Contains(string(e.Response.Body), " 8000}}") {
		t.Errorf("got %s, %s, unsendable %q", e.Request.Body, e.Response.Body, e.Unsendable)
	}
	if e := recording.NewRedactor(1 << 20).Redact(s); e.Unsendable != "" || !bytes.Equal(e.Request.Body, s.Request.Body) || !bytes.Equal(e.Response.Body, s.Response.Body) {
		t.Error("payloads within the limit are not kept")
	}
}

// TestWhatIsNotKept: what cannot be read goes, and it is said.
func TestWhatIsNotKept(t *testing.T) {
	for name, change := range map[string]func(*recording.Exchange){
		"compressed":            func(s *recording.Exchange) { body(s, "", "{}"); s.Request.Headers["Content-Encoding"] = "gzip" },
		"plain text":            func(s *recording.Exchange) { body(s, "text/plain", "my key is "+secret) },
		"cut":                   func(s *recording.Exchange) { body(s, "", "{}"); s.Unsendable = "too long" },
		"two values":            func(s *recording.Exchange) { body(s, "", `{} {"api_key":"k"}`) },
		"odd name in the query": func(s *recording.Exchange) { s.Request.Path += `?{"api_key":"k"}` },
		"invalid JSON":          func(s *recording.Exchange) { s.Request.Path += `?params=[{` },
		"a placeholder":         func(s *recording.Exchange) { body(s, "", `{"summary":"{{caller-1}}"}`) },
		"a second question mark": func(s *recording.Exchange) {
			s.Request.Path += "?include_fields=id?Bugzilla_api_key=" + url.QueryEscape(secret)
		},
		"an escaped separator": func(s *recording.Exchange) { s.Request.Path += "?ids=1%26api_key%3D" + url.QueryEscape(secret) },
		"parts without an end": func(s *recording.Exchange) { body(s, "multipart/form-data; boundary=x", "--x\r\nA: b\r\n\r\nc") },
		"parts with a preamble": func(s *recording.Exchange) {
			parts(s, "token", secret)
			s.Request.Body = append([]byte(secret+"\r\n"), s.Request.Body...)
		},
		"parts with an epilogue": func(s *recording.Exchange) {
			parts(s, "token", secret)
			s.Request.Body = append(s.Request.Body, secret...)
		},
		"XML with a comment": func(s *recording.Exchange) { body(s, "text/xml", "<a><!-- "+secret+" --></a>") },
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
		{"text/xml", `<methodResponse><params><param><value><struct><member><name>token</name><value>` + mark(secret) + `</value></member></struct></value></param></params></methodResponse>`, false, true, false},
		{"text/html; charset=utf-8", secret, true, false, false},
		{"image/png", secret, false, false, true},
	} {
		s := seen()
		s.Response.Headers["content-type"] = c.kind
		s.Response.Body = []byte(c.body)
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
			s.Response.Body = []byte(answer)
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
		f.Add(s.Request.Headers["Content-Type"], s.Request.Body)
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
// found the text becomes a digest.
func TestEchoes(t *testing.T) {
	inQuery := func(s *recording.Exchange) { s.Request.Path = withQuery(s.Request.Path, "token", secret) }
	for name, c := range map[string]struct {
		put              func(*recording.Exchange)
		kind, body, want string
	}{
		"escaped in JSON":  {inQuery, "application/json", `{"message":"no ` + strings.Trim(escapeJSON(secret), `"`) + `!"}`, `{"message":"no {{caller-1}}!"}`},
		"name of a member": {inQuery, "application/json", `{` + quote(secret) + `:1}`, `{"{{caller-1}}":"D"}`},

		"escaped in XML":        {inQuery, "text/xml", fault(strings.ReplaceAll(mark(secret), "S", "&#83;")), fault("{{caller-1}}")},
		"escaped twice in XML":  {inQuery, "text/xml", fault(mark(mark(secret))), fault("D")},
		"escaped in a text":     {inQuery, "application/json", `{"message":"no /rest?token=` + url.QueryEscape(secret) + `"}`, `{"message":"D"}`},
		"nothing of it in JSON": {inQuery, "application/json", `{"message":"S3cret"}`, `{"message":"S3cret"}`},
	} {
		s := seen()
		c.put(&s)
		s.Response.Headers["content-type"] = c.kind
		s.Response.Body = []byte(c.body)
		p := recording.NewRedactor(1 << 10).Redact(s).Response
		if digest.ReplaceAllString(string(p.Body), "D") != c.want {
			t.Errorf("%s: got %q of %d bytes, want %q", name, p.Body, p.Size, c.want)
		}
	}
}

// fault is a response of XML-RPC with a text.
func fault(text string) string {
	return "<methodResponse><fault><value><struct><member><name>faultString</name><value><string>" + text + "</string></value></member></struct></value></fault></methodResponse>"
}
