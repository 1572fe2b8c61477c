package recording_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/wire"
	"portico/upstream/recording"
)

// TestRoundTrip: what is written is read again, for all recordings of a real tracker and for what they do not have.
func TestRoundTrip(t *testing.T) {
	list, err := wire.Load(wireRecordings)
	must(t, err)
	list = append(list, recording.Exchange{
		Name: "odd", Callers: []string{"caller-1"}, Unsendable: "why", Note: "<&>", Reset: true,
		Request:  recording.Request{Method: "get", Path: "/%zz?a={{caller-1}}", Headers: map[string]string{"X": "1"}, Body: []byte("\xff")},
		Response: &recording.Response{Status: 200, Headers: map[string]string{}, Body: []byte("\xfe"), Elision: recording.Elision{Size: 7, SHA256: "00"}},
	}, recording.Exchange{Name: "empty", Request: recording.Request{Method: "PUT", Path: "/", Headers: map[string]string{}, Body: []byte{}}})
	text := bytes.NewBufferString("\ufeff") // some editors begin a file so
	for _, e := range list {
		must(t, recording.Write(text, e))
	}
	in := recording.NewReader(text)
	for _, want := range list {
		got, err := in.Next()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, got\n%+v\nwant\n%+v", want.Name, err, got, want)
		}
	}
	if _, err := in.Next(); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// TestManyCallers: a Redactor remembers so many and no more, and an exchange with very many credentials costs little.
func TestManyCallers(t *testing.T) {
	redactor := recording.NewRedactor(1 << 10)
	flood := seen()
	var keys strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&keys, "&api_key=flooding%d", i)
	}
	flood.Request.Path += "?x" + keys.String()
	e := redactor.Redact(flood)
	if e.Unsendable == "" || strings.Contains(written(t, e), "flooding") {
		t.Errorf("unsendable %q", e.Unsendable)
	}
	names, total := map[string]bool{}, 0
	redact := func(parameter string, n int) {
		t.Helper()
		var target strings.Builder
		target.WriteString("/rest/x?")
		for k := range n {
			fmt.Fprintf(&target, parameter, total+k)
		}
		total += n
		e := redactor.Redact(recording.Exchange{Request: recording.Request{Method: "GET", Path: target.String()}})
		for _, name := range e.Callers {
			names[name] = true
		}
		if e.Unsendable == "" && len(names) != total {
			t.Fatalf("after %d callers there are %d names, and %.100s can be made again", total, len(names), e.Request.Path)
		}
	}
	for range 8 {
		redact("&creator=u%d@example.com", 8000)
	}
	for range 30 { // 64 callers at a time
		redact("&api_key=%03x", 64) // a short one is looked for in its place only
	}
	if len(names) > 1<<16+1 || !names["caller-0"] {
		t.Errorf("%d callers are remembered", len(names))
	}
}

// TestNoRequest: a line without a request is of another file, and no exchange that cannot be made.
func TestNoRequest(t *testing.T) {
	for _, line := range []string{"{}", "null", `{"msg":"a line of a log"}`, `{"name":"1","request":{"method":"GET"}}`} {
		_, err := recording.NewReader(strings.NewReader("\n" + line + "\n")).Next()
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestFill: what was taken out and put back is the request that it was, in every form, for another key as well.
func TestFill(t *testing.T) {
	const key = `Key "with" <odd> & + % / things`
	for _, form := range forms() {
		s := seen()
		form.put(&s, key)
		e := recording.NewRedactor(1 << 10).Redact(s)
		if e.Unsendable != "" || len(e.Callers) == 0 {
			continue
		}
		values := map[string]string{}
		for _, name := range e.Callers {
			values[name] = key
		}
		filled, err := e.Fill(values)
		must(t, err)
		again := recording.Exchange{Request: filled}
		// Sent again it is redacted to the same, so the credential stands where it stood, in a spelling that is read.
		twice := recording.NewRedactor(1 << 10).Redact(again)
		if unnumbered(twice.Request.Path) != unnumbered(e.Request.Path) || unnumbered(string(twice.Request.Body)) != unnumbered(string(e.Request.Body)) {
			t.Errorf("%s: filled it is\n%s %s\nand again\n%s %s\nwant\n%s %s", form.name, filled.Path, filled.Body, twice.Request.Path, twice.Request.Body, e.Request.Path, e.Request.Body)
		}
	}
}

var numbers = regexp.MustCompile(`-\d+\}\}`)

func unnumbered(text string) string { return numbers.ReplaceAllString(text, "}}") }

func TestFillRefuses(t *testing.T) {
	s := seen()
	s.Request.Headers["X-Bugzilla-Api-Key"] = "key one"
	s.Request.Path += "?token=two"
	e := recording.NewRedactor(1 << 10).Redact(s)
	_, err := e.Fill(map[string]string{"caller-2": "x"})
	if err == nil || err.Error() != "there is no value for caller-1; use --key or --keys" {
		t.Errorf("got %v", err)
	}
	if _, err := e.Fill(map[string]string{"caller-1": "x", "caller-2": "x\r\nEvil: 1"}); err == nil {
		t.Error("a value of two lines was put into a header")
	}
	const second = "\r\n\r\nPOST /rest/flag_type HTTP/1.1\r\nHost: x"
	for _, edited := range []recording.Request{
		{Method: "GET", Path: "/rest/version HTTP/1.1" + second}, {Method: "GET / HTTP/1.1" + second, Path: "/"},
		{Method: "GET", Path: "/", Headers: map[string]string{"A: b" + second + "\nC": "d"}},
	} {
		if _, err := (recording.Exchange{Request: edited}).Fill(nil); err == nil {
			t.Errorf("%q is more than one request", edited)
		}
	}
	literal := recording.Exchange{Request: recording.Request{Path: "/{{caller-1}}"}}
	if filled, err := literal.Fill(map[string]string{"caller-1": "key"}); err != nil || filled.Path != "/{{caller-1}}" {
		t.Errorf("a text that looks like a placeholder became %q, %v", filled.Path, err)
	}
}

// TestSendHTTPS: a tracker behind https has to prove its name.
func TestSendHTTPS(t *testing.T) {
	front := httptest.NewTLSServer(http.NotFoundHandler())
	defer front.Close()
	_, err := recording.Send(t.Context(), front.URL, recording.Request{Method: http.MethodGet, Path: "/"}, 1<<20)
	if _, unproven := errors.AsType[*tls.CertificateVerificationError](err); !unproven {
		t.Errorf("got %v", err)
	}
}

func TestOperationOf(t *testing.T) {
	for request, want := range map[string]mapping.Operation{
		"GET /rest/flag_type/P":                   mapping.OpFlagTypes,
		"GET /rest.cgi/flag_type/P/C?x=/y":        mapping.OpFlagTypes,
		"GET //rest//bug//5/attachment":           mapping.OpBugAttachments,
		"GET /rest/bug/attachment/attachment":     mapping.OpBugAttachments,
		"PUT /rest/bug/attachment/5":              mapping.OpUpdateAttachments,
		"POST /rest/bug/5/attachment?api_key=key": mapping.OpCreateAttachment,
		"PUT /rest/bug/attachment":                "",
		"GET /rest/bug/5/attachment/":             "",
		"HEAD /rest/flag_type/P":                  "",
		"POST /jsonrpc.cgi":                       "",
		"GET /rest/flag_type":                     "",
		"GET /":                                   "",
	} {
		method, target, _ := strings.Cut(request, " ")
		if got := recording.OperationOf(method, target); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
}
