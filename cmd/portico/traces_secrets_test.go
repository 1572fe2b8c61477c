package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
)

// secretMark is in everything that must not get into a trace.
const secretMark = "hunter2"

// loud is a request whose every part holds something that is nobody's business.
type loud struct {
	name, method, path, body string
	header                   []string
}

// loudRequests show credentials in every form and name objects in every place, at the
// operations and at what passes through, right and wrong.
func loudRequests() []loud {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secretMark))
	all := []loud{
		{name: "a product", method: "GET", path: "/rest/flag_type/hunter2-product/hunter2-component"},
		{name: "a component", method: "GET", path: "/rest/flag_type/WebShop?component=hunter2"},
		{name: "a bug", method: "GET", path: "/rest/bug/hunter2-alias/attachment?ids=hunter2"},
		{name: "fields", method: "GET", path: "/rest/bug/attachment/1?include_fields=hunter2"},
		{name: "an unusual method", method: "HUNTER2", path: "/rest/bug/1/attachment"},
		{name: "a page", method: "GET", path: "/hunter2/show_bug.cgi?id=hunter2#hunter2"},
		{name: "bad escapes", method: "GET", path: "/rest/flag_type/hunter2%2F%FF"},
		{name: "not JSON", method: "PUT", path: "/rest/bug/attachment/1", body: `{"hunter2"`},
		{name: "XML-RPC", method: "POST", path: "/xmlrpc.cgi", body: "<methodCall>hunter2</methodCall>"},
	}
	for _, header := range []string{
		"X-BUGZILLA-API-KEY", "X-BUGZILLA-TOKEN", "X-BUGZILLA-LOGIN", "X-BUGZILLA-PASSWORD", "Authorization:Bearer ", "Authorization:" + basic + " ",
		"Cookie:Bugzilla_login=1; Bugzilla_logincookie=", "Idempotency-Key", "User-Agent", "Referer", "Traceparent", "Baggage:key=", "If-None-Match",
	} {
		name, before, _ := strings.Cut(header, ":")
		for _, path := range []string{"/rest/flag_type/WebShop", "/rest/bug/1/attachment", "/show_bug.cgi"} {
			all = append(all, loud{name: name, method: "GET", path: path, header: []string{name, before + secretMark}})
		}
	}
	for _, name := range []string{
		"api_key", "Bugzilla_api_key", "login", "Bugzilla_login", "password", "Bugzilla_password", "token", "Bugzilla_token",
	} {
		query := "?" + url.Values{name: {secretMark}}.Encode()
		body := fmt.Sprintf(`{%q: "hunter2", "name": "hunter2", "description": "hunter2", "summary": "hunter2", "file_name": "hunter2", "content_type": "text/plain", "data": "aHVudGVyMg=="}`, name)
		for _, path := range []string{"/rest/flag_type/WebShop", "/rest/bug/1/attachment", "/rest/bug/attachment/1", "/rest/bug/1", "/rest.cgi/version"} {
			all = append(all, loud{name: name, method: "GET", path: path + query})
		}
		all = append(all,
			loud{name: name, method: "POST", path: "/rest/flag_type" + query, body: body},
			loud{name: name, method: "PUT", path: "/rest/flag_type/hunter2" + query, body: body},
			loud{name: name, method: "POST", path: "/rest/bug/1/attachment" + query, body: body},
			loud{name: name, method: "PUT", path: "/rest/bug/attachment/1" + query, body: body},
			loud{name: name, method: "POST", path: "/jsonrpc.cgi" + query, body: body},
		)
	}
	return all
}

// TestNothingSecretInTraces sends every form of credential and every kind of name, to a
// tracker that answers, to one that fails and to one that is away, and looks at all
// bytes that the collector gets.
func TestNothingSecretInTraces(t *testing.T) {
	t.Parallel()
	answers, fails := startListening(t), startListening(t)
	fails.SetFaults([]tracker.Fault{{Kind: tracker.FaultError500}})
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = away.Close()
	for name, behind := range map[string]string{"answers": answers.url, "fails": fails.url, "away": "http://" + away.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := startCollector(t, (*httptest.Server).Start)
			clients, _ := startTraced(t, behind, "endpoint: '"+seen.url+"', headers_env: COLLECTOR", "COLLECTOR=X-Key: hunter2")
			asked := loudRequests()
			for _, each := range asked {
				send(t, each.method, clients+each.path, each.body, each.header...)
			}
			process.Eventually(t, "every request has a span", func() bool { return countRequests(seen) == len(asked) })
			lookForSecrets(t, seen)
		})
	}
	t.Cleanup(func() {
		if len(answers.seen) < len(loudRequests())/2 {
			t.Errorf("only %d requests came through", len(answers.seen))
		}
	})
}

func countRequests(c *collector) int {
	count := 0
	for _, span := range c.spans() {
		if !strings.HasPrefix(span.Name, "tracker ") {
			count++
		}
	}
	return count
}

// lookForSecrets looks at the bytes as they came, and at the words of the spans: there
// is only a handful of them.
func lookForSecrets(t *testing.T, seen *collector) {
	t.Helper()
	seen.mu.Lock()
	raw := strings.ToLower(seen.raw.String())
	seen.mu.Unlock()
	for _, form := range []string{
		secretMark, base64.StdEncoding.EncodeToString([]byte(secretMark))[:8], hex.EncodeToString([]byte(secretMark)), "webshop", "component=", "me:",
	} {
		if strings.Contains(raw, strings.ToLower(form)) {
			t.Errorf("%q is in a trace", form)
		}
	}
	tame := regexp.MustCompile(`^[a-zA-Z0-9_.-]*$`)
	var known []string
	for _, operation := range mapping.Operations() {
		known = append(known, "/rest"+operation.Path(), "/rest/flag_type/{product}")
	}
	names := map[string]bool{}
	for _, span := range seen.spans() {
		names[span.Name] = true
		for _, each := range span.Attributes {
			if value := each.Value.GetStringValue(); !tame.MatchString(value) && !(each.Key == "http.route" && slices.Contains(known, value)) {
				t.Errorf("%s has %s=%q", span.Name, each.Key, value)
			}
		}
		if len(span.Events)+len(span.Links) > 0 || span.Status.GetMessage() != "" || span.TraceState != "" {
			t.Errorf("%s says more than it should: %v", span.Name, span)
		}
	}
	if len(names) > 20 {
		t.Errorf("there are %d names of spans: %v", len(names), names)
	}
}
