package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// secrets are credentials that can be recognised wherever they turn up. Those that the fixture does not know are as good for
// this purpose: they are logged, stored and quoted in the same places.
type secrets map[string]string

func (s secrets) add(name, value string) string {
	s[name] = value
	s[name+", escaped"] = url.QueryEscape(value)
	s[name+", in base64"] = base64.StdEncoding.EncodeToString([]byte(value))
	return value
}

// in tells which of the secrets a text holds.
func (s secrets) in(text string) []string {
	var found []string
	for name, value := range s {
		if strings.Contains(text, value) {
			found = append(found, name)
		}
	}
	return found
}

// look demands that a text holds none of them.
func (s secrets) look(t testing.TB, where, text string) {
	t.Helper()
	for _, name := range s.in(text) {
		i := strings.Index(text, s[name])
		t.Errorf("%s shows the %s: …%s…", where, name, text[max(0, i-200):min(len(text), i+len(s[name])+50)])
	}
}

func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	s := secrets{}
	s.add("password", "päss word!")
	for _, text := range []string{"x päss word! y", "?p=p%C3%A4ss+word%21&", "Basic " + base64.StdEncoding.EncodeToString([]byte("päss word!"))} {
		if len(s.in(text)) == 0 {
			t.Errorf("nothing was found in %q", text)
		}
	}
	if found := s.in("pass word"); len(found) != 0 {
		t.Errorf("found %v where there is nothing", found)
	}
}

// monitor takes down every command that a Redis server gets, until the test ends.
func monitor(t testing.TB, address string) *process.Output {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	must(t, err)
	if _, err := io.WriteString(connection, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(connection, 16).ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q %v", line, err)
	}
	commands, done := &process.Output{}, make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(commands, connection)
	}()
	t.Cleanup(func() {
		connection.Close()
		<-done
	})
	return commands
}

// stored gives all keys and values of a Redis server as one text.
func stored(t testing.TB, address string) string {
	t.Helper()
	reader := redisClient(t, address)
	names, err := reader.Keys(t.Context(), "*").Result()
	if err != nil || len(names) == 0 {
		t.Fatalf("there is nothing in Redis (%v)", err)
	}
	var all strings.Builder
	for _, name := range names {
		all.WriteString(name + "\n")
		for _, read := range []func() any{
			func() any { return reader.Get(t.Context(), name).Val() },
			func() any { return reader.HGetAll(t.Context(), name).Val() },
			func() any { return reader.SMembers(t.Context(), name).Val() },
			func() any { return reader.LRange(t.Context(), name, 0, -1).Val() },
		} {
			fmt.Fprintln(&all, read())
		}
	}
	return all.String()
}

// provoking are requests with credentials in every form, many of them wrong in a way that leads to errors and log lines.
func provoking(t testing.TB, s secrets, key, token string) []ask {
	t.Helper()
	list := []ask{}
	credentials := forms(key, token)
	wrong := s.add("unknown key", "LeakedKey1234567890abcdefghijklmnopqrst%/")
	credentials = append(credentials, forms(wrong, "7-"+s.add("unknown token", "LeakedToken99"))...)
	credentials = append(credentials,
		form{name: "Basic", head: http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+s.add("Basic password", "LeakedBasic77")))}}},
		form{name: "odd scheme", head: http.Header{"Authorization": {"Token " + s.add("odd scheme", "LeakedScheme55")}}},
		form{name: "cookies", head: http.Header{"Cookie": {"Bugzilla_login=3; Bugzilla_logincookie=" + s.add("cookie", "LeakedCookie44")}}},
		form{name: "wrong password", query: url.Values{"login": {"admin@example.com"}, "password": {s.add("wrong password", "Leaked Päss&word=33")}}},
		form{name: "a line break", query: url.Values{"api_key": {s.add("key with a line break", "LeakedBreak66") + "\r\nHost: x"}}},
		form{name: "twice", query: url.Values{"api_key": {wrong, wrong}, "Bugzilla_token": {"1-" + s["unknown token"], "2-x"}}},
	)
	paths := []operation{
		{"", "GET", "/flag_type/TestProduct", "", 0, 0}, {"", "GET", "/flag_type/No%20Such", "", 0, 0}, {"", "GET", "/bug/99999/attachment", "", 0, 0},
		{"", "GET", "/bug/attachment/x", "", 0, 0}, {"", "GET", "/bug/1", "", 0, 0}, {"", "GET", "/no/such/resource", "", 0, 0},
		{"", "GET", "/bug/%00/attachment", "", 0, 0}, {"", "GET", "/bug/1/attachment/", "", 0, 0}, {"", "PUT", "/bug/attachment", `{"ids":[1]}`, 0, 0},
		{"", "POST", "/bug/7/attachment", `{"data":"!"}`, 0, 0}, {"", "POST", "/flag_type", `{"name":"a b","description":"d"}`, 0, 0},
		{"", "PUT", "/flag_type/1", `{"colour":1}`, 0, 0}, {"", "PUT", "/bug/attachment/1", `{"ids":[2]}`, 0, 0}, {"", "POST", "/bug/1/comment", `{"comment":"c"}`, 0, 0},
		{"", "GET", "/bug/1/attachment?callback=not%20a%20name", "", 0, 0}, {"", "GET", "/bug/1/attachment?x=" + strings.Repeat("y", 9000), "", 0, 0},
		{"", "DELETE", "/flag_type/1", "", 0, 0}, {"", "OPTIONS", "/flag_type/1", "", 0, 0}, {"", "GET", "/login", "", 0, 0}, {"", "TRACE", "/bug/1", "", 0, 0},
	}
	for _, f := range credentials {
		for _, op := range append(seven(), paths...) {
			if len(f.body) == 0 || op.body != "" {
				list = append(list, f.with(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}))
			}
		}
	}
	return append(list, malformed(s, wrong)...)
}

// malformed are requests whose credentials stand where a parser stumbles over them.
func malformed(s secrets, key string) []ask {
	var list []ask
	for _, body := range []string{
		`{"Bugzilla_api_key":"` + key + `",`, `{"Bugzilla_api_key":"` + key + "\x01" + `"}`, `{"Bugzilla_api_key":"` + key + `"}}`,
		`{"Bugzilla_api_key":"` + key + `","Bugzilla_api_key":"` + key + `"}`, `{"Bugzilla_api_key":["` + key + `"]}`, `{"Bugzilla_password":{"p":"` + key + `"}}`,
		`["` + key + `"]`, `"` + key + `"`, key, `{"` + key + "\xff" + `":1}`, `{"token":"` + key + `","flags":"` + "?" + `"}`, "Bugzilla_api_key=" + key,
	} {
		for _, path := range []string{"/rest/flag_type", "/rest/bug/7/attachment", "/jsonrpc.cgi", "/xmlrpc.cgi", "/rest/bug/7/comment"} {
			list = append(list, ask{method: "POST", path: path, body: body})
		}
		list = append(list, ask{method: "PUT", path: "/rest/flag_type/1", body: body}, ask{method: "PUT", path: "/rest/bug/attachment/1", body: body})
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data"} {
		list = append(list, ask{method: "POST", path: "/rest/flag_type", body: "Bugzilla_api_key=" + url.QueryEscape(key) + "&name=a&name=b;%zz=", header: http.Header{"Content-Type": {kind}}})
	}
	return append(list,
		ask{method: "GET", path: "/rest/bug/1/attachment?Bugzilla_api_key=" + key + "%zz&%ff=1"},
		ask{method: "POST", path: "/rest/flag_type?Bugzilla_api_key=" + url.QueryEscape(key) + "&x=%ff", body: `{}`},
		ask{method: "POST", path: "/rest/flag_type", body: `{}`, header: http.Header{"Content-Encoding": {"gzip"}, "X-Bugzilla-Api-Key": {key}}},
		ask{method: "GET", path: "/index.cgi?Bugzilla_login=a&Bugzilla_password=" + s.add("password of a page", "LeakedPage22")},
		ask{method: "GET", path: "/redirect?token=" + s.add("token of a redirect", "LeakedRedirect11")},
	)
}

// ends sends the beginning of a request and hangs up.
func (f *facade) ends(t testing.TB, head string) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(f.base, "http://"))
	must(t, err)
	defer connection.Close()
	if _, err := io.WriteString(connection, head); err != nil {
		t.Fatal(err)
	}
	_ = connection.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.Copy(io.Discard, connection)
}

func TestNoCredentialAppearsAnywhere(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	process.Redis(t, address)
	commands := monitor(t, address)
	tracker, base := startTracker(t, process.FreeAddress(t))
	f := startFacade(t, base, "CACHE_REDIS=redis://"+address, "CACHE_TTL=1s")
	s := secrets{}
	key, token := s.add("key", f.keys["admin"]), s.add("token", f.login(t))
	s.add("password", adminPassword)
	s.add("secret of the token", strings.SplitN(token, "-", 2)[1])
	requests := provoking(t, s, key, token)
	seenErrors := 0
	round := func(what string) {
		for _, a := range requests {
			got := f.do(t, a)
			if got.status >= 400 {
				seenErrors++
				s.look(t, fmt.Sprintf("%s: the error %d of %s %.60s", what, got.status, a.method, a.path), string(got.body))
			}
			headers := &bytes.Buffer{}
			_ = got.header.Write(headers)
			s.look(t, what+": the head of an answer", headers.String())
		}
		f.ends(t, "POST /rest/flag_type?api_key="+url.QueryEscape(key)+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nX-BUGZILLA-API-KEY: "+key+"\r\n\r\n{\"api_key\":\""+key)
		f.ends(t, "GET /rest/bug/1?api_key="+key+" HTTP/1.1\r\nX-BUGZILLA-API-KEY: "+key+"\r\nbad header "+key+"\r\n\r\n")
		f.ends(t, "POST /rest/bug/7/attachment HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer "+key+"\r\n\r\n"+key+"\r\n")
	}
	round("with a tracker")
	tracker.Kill(t)
	round("without a tracker")
	if seenErrors < 500 {
		t.Errorf("only %d errors were provoked", seenErrors)
	}
	for _, page := range []string{"/metrics", "/status", "/livez", "/readyz", "/"} {
		s.look(t, page, string(f.operators.do(t, ask{method: http.MethodGet, path: page}).body))
	}
	s.look(t, "Redis", stored(t, address))
	s.look(t, "a command to Redis", commands.String())
	if !strings.Contains(commands.String(), "TestProduct") {
		t.Error("the monitor shows no product: it is not where the cache is")
	}
	f.Stop(t)
	s.look(t, "the log", f.Err.String())
	s.look(t, "the output", f.Out.String())
	if lines := strings.Count(f.Err.String(), "\n"); lines < 2*len(requests) {
		t.Errorf("the log has %d lines for %d requests", lines, 2*len(requests))
	}
}
