package bugzilla

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/transport"
)

// dial makes a client of a server that answers as handler says.
func dial(t *testing.T, dialect string, handler http.HandlerFunc) *Client {
	t.Helper()
	client, _ := dialStack(t, dialect, handler, transport.Options{})
	return client
}

// dialStack is dial over a transport of its own kind.
func dialStack(t *testing.T, dialect string, handler http.HandlerFunc, options transport.Options) (*Client, *transport.Stack) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	must(t, err)
	stack := transport.New(options)
	t.Cleanup(stack.Close)
	client, err := New(Options{URL: base, Dialect: dialect, Transport: stack, Split: jsonblob.SplitOptions{Dir: t.TempDir()}})
	must(t, err)
	return client, stack
}

func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAnswersBecomeErrors(t *testing.T) {
	long := strings.Repeat("x", headSize)
	for _, c := range []struct {
		name         string
		status       int
		body         string
		code, want   int
		reason       mapping.Reason
		writeUnknown bool
	}{
		{"the tracker's own", 404, `{"error":true,"code":51,"message":"m"}`, 51, 404, "", false},
		{"internal error with success", 201, `{"error":true,"code":100500,"message":"m"}`, 100500, 500, "", false},
		{"another error with success", 200, `{"error":1,"code":"51","message":"m"}`, 51, 404, "", false},
		{"long error", 400, `{"message":"` + long + `","error":true,"code":32000}`, 32000, 400, "", false},
		{"page", 200, `<html>`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"empty", 200, ``, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"cut JSON", 200, `{"bug":[`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"array", 200, `[]`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"not modified, which was not asked", 304, ``, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"redirect", 302, `{"bug":[],"attachment":[],"flagtypes":[]}`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"error page", 500, `<html>`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, true},
		{"page of a web server", 414, `<html>`, mapping.CodeURILong, 414, mapping.ReasonWebServer, false},
		{"page that asks for a login", 401, `<html>`, 200401, 401, mapping.ReasonWebServer, false},
		{"refusal without a word", 400, ``, 200400, 400, mapping.ReasonWebServer, false},
		{"gateway's JSON", 404, `{"detail":"none"}`, 200404, 404, mapping.ReasonWebServer, false},
		{"long page", 413, `<html>` + long, mapping.CodeTooLarge, 413, mapping.ReasonWebServer, false},
		{"cut error", 404, `{"error":true,"code":51,`, 200404, 404, mapping.ReasonWebServer, false},
		{"gateway's error", 504, `{"error":true,"code":1,"message":"m"}`, 1, 504, "", true},
		{"gateway's error without a code", 500, `{"message":"m"}`, 0, 500, "", true},
		{"gateway without a tracker", 503, `{"message":"m"}`, 0, 503, "", true},
		{"the tracker's failure", 500, `{"error":true,"code":100500,"message":"m"}`, 100500, 500, "", false},
		{"no flag types", 200, `{"bug":[]}`, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := dial(t, "bugzilla-5", answering(c.status, "application/json", c.body))
			_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
			checkError(t, err, c.code, c.want, c.reason, false)
			if c.name == "no flag types" {
				return
			}
			_, err = client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
			if c.writeUnknown {
				checkError(t, err, mapping.CodeTimeout, 504, mapping.ReasonBadResponse, true)
			} else {
				checkError(t, err, c.code, c.want, c.reason, false)
			}
		})
	}
}

func checkError(t *testing.T, err error, code, status int, reason mapping.Reason, unknown bool) {
	t.Helper()
	var said *mapping.Error
	if !errors.As(err, &said) {
		t.Fatalf("got %v, want a *mapping.Error", err)
	}
	if said.Code != code || said.Status != status || said.Reason != reason || said.Unknown != unknown || said.Message == "" {
		t.Errorf("got %+v, want code %d, status %d, reason %q, unknown %v", said, code, status, reason, unknown)
	}
	if reason == mapping.ReasonWebServer && said.Err == nil {
		t.Error("the cause of the refusal is lost")
	}
}

func TestRequestCarriesWhatTheTrackerNeeds(t *testing.T) {
	var seen *http.Request
	var body []byte
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"id":19}`)
	})
	name := "n"
	caller := upstream.Caller{Credentials: upstream.Credentials{APIKey: "K"}, Address: "192.0.2.1", RequestID: "r1", UserAgent: "old/1"}
	reply, err := client.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: &name}}})
	if err != nil || reply.ID() != 19 {
		t.Fatalf("got id %d (%v)", reply.ID(), err)
	}
	if want := `{"name":"n","Bugzilla_api_key":"K"}`; string(body) != want || seen.ContentLength != int64(len(want)) {
		t.Errorf("sent %s with length %d, want %s", body, seen.ContentLength, want)
	}
	for header, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "old/1",
		"X-Request-Id": "r1", "X-Forwarded-For": "192.0.2.1",
	} {
		if got := seen.Header.Get(header); got != want {
			t.Errorf("header %s is %q, want %q", header, got, want)
		}
	}
}

// TestLargeResponseStreams, and one that is cut short is noticed although its framing is right.
func TestLargeResponseStreams(t *testing.T) {
	start := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("YWFh", 1<<18)
	for text, isWhole := range map[string]bool{start + `"}}}`: true, start: false, start + `"}}`: false} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", text))
		reply, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"1"}}})
		if err != nil || reply.Len() != int64(len(text)) {
			t.Fatalf("got length %d (%v), want %d", reply.Len(), err, len(text))
		}
		var got bytes.Buffer
		_, err = reply.WriteTo(&got)
		_, isBroken := errors.AsType[*mapping.StreamError](err)
		if isBroken == isWhole || (got.String() == text) != isWhole {
			t.Errorf("%d of %d bytes passed with error %v", got.Len(), len(text), err)
		}
		if err := reply.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDialectIsAskedOnce, and by rest.cgi where there is no /rest.
func TestDialectIsAskedOnce(t *testing.T) {
	for version, c := range map[string]struct{ dialect, asked, types string }{
		"20240101.1": {"bmo", "/rest/version", "/rest/flag_types/P"},
		"5.2":        {"bugzilla-5", "/rest.cgi/version", "/rest.cgi/flag_type/P"},
	} {
		var asked []string
		client := dial(t, "auto", func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			switch r.URL.Path {
			case c.asked:
				_, _ = io.WriteString(w, `{"version":"`+version+`"}`)
			case c.types:
				_, _ = io.WriteString(w, `{"bug":[],"attachment":[]}`)
			default:
				http.NotFound(w, r)
			}
		})
		for range 2 {
			if _, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}}); err != nil {
				t.Fatal(err)
			}
		}
		want := slices.Compact([]string{"/rest/version", c.asked})
		if want = append(want, c.types, c.types); !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
		if name, known, certain := client.Pinned(); name != c.dialect || known != version || !certain {
			t.Errorf("pinned %s from %q, %v", name, known, certain)
		}
	}
}

func TestJSONRPCAnswers(t *testing.T) {
	for answer, want := range map[string]int{
		`{"error":null,"id":1,"result":{"bug":[],"attachment":[]}}`:      0,
		`{"error":{"code":106,"message":"m"},"id":1,"result":null}`:      106,
		`{"error":null,"id":1,"result":null}`:                            mapping.CodeBadGateway,
		`{"error":{"code":51,"message":"m"},"id":1,"result":{"bug":[]}}`: 51,
		`{"error":{},"id":1,"result":null}`:                              mapping.CodeBadGateway,
	} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", answer))
		_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "a/b"}})
		var said *mapping.Error
		if errors.As(err, &said) != (want != 0) || want != 0 && said.Code != want {
			t.Errorf("%s gives %v, want code %d", answer, err, want)
		}
	}
}

func TestNothingOfACredentialInErrors(t *testing.T) {
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	})
	caller := upstream.Caller{Credentials: upstream.Credentials{APIKey: "SECRETKEY", Login: "l", Password: "SECRETWORD"}}
	_, read := client.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	_, write := client.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, given := client.Do(cancelled, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	for _, err := range []error{read, write, given} {
		if text := fmt.Sprintf("%v %+v %#v %s", err, err, caller, caller.Credentials); err == nil || strings.Contains(text, "SECRET") {
			t.Errorf("an error shows a credential: %s", text)
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte(`{"a":"b\"}","c":[1,{}]}`), 3)
	f.Add([]byte(`{"a":"b`), 1)
	f.Add([]byte(`{"a":"\\\\","b\\":"\""}`), 6)
	f.Fuzz(func(t *testing.T, text []byte, split int) {
		if split < 0 || split > len(text) {
			return
		}
		var scan jsonScan
		_, _ = scan.Write(text)
		var object map[string]json.RawMessage
		if json.Unmarshal(text, &object) == nil && object != nil && !scan.closed() {
			t.Fatalf("%q is an object and counts as cut short", text)
		}
		var bytewise jsonScan
		for i := range text {
			_, _ = bytewise.Write(text[i : i+1])
		}
		if bytewise.depth != scan.depth || bytewise.inString != scan.inString {
			t.Fatalf("%q is read otherwise at once than byte by byte", text)
		}
		g := newGuard(text[:split], io.NopCloser(bytes.NewReader(text[split:])))
		rest, err := io.ReadAll(g)
		if (err == nil) != scan.closed() {
			t.Fatalf("closed is %v, the guard says %v", scan.closed(), err)
		}
		if err == nil && !bytes.Equal(rest, text[split:]) {
			t.Fatalf("got %q, want %q", rest, text[split:])
		}
	})
}

// TestCookiesComeWithTheirTracker: their paths mean nothing without its address. Flag types, which callers share, come without cookies.
func TestCookiesComeWithTheirTracker(t *testing.T) {
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=1; path=/bz/")
		answering(200, "application/json", `{"bugs":{},"attachments":{},"ids":[1],"bug":[],"attachment":[]}`)(w, r)
	})
	read, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}})
	must(t, err)
	defer read.Close()
	write, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1"}}})
	must(t, err)
	for _, document := range []*mapping.Document{read.Document, write.Document} {
		if document.Tracker == nil || document.Tracker.String() != client.base || !slices.Equal(document.Cookies, []string{"a=1; path=/bz/"}) {
			t.Errorf("the cookies %q are of %v", document.Cookies, document.Tracker)
		}
	}
	shared, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	must(t, err)
	if len(shared.Document.Cookies) > 0 {
		t.Errorf("flag types come with %q", shared.Document.Cookies)
	}
}

// TestRedirectNobodyCanRead: http.Client fails at an address that it cannot read before it asks whether to follow it.
func TestRedirectNobodyCanRead(t *testing.T) {
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[::1/?token=SECRET")
		w.WriteHeader(http.StatusFound)
	})
	_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	checkError(t, err, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false)
	if said, _ := errors.AsType[*mapping.Error](err); strings.Contains(said.Err.Error(), "SECRET") {
		t.Errorf("the cause shows the address: %v", said.Err)
	}
	_, err = client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
	checkError(t, err, mapping.CodeTimeout, 504, mapping.ReasonBadResponse, true)
}

// TestFailuresOfUnknownKind: what the transport does not explain leaves open what became of a write.
func TestFailuresOfUnknownKind(t *testing.T) {
	if write, read := Failure(errors.New("?"), true), Failure(errors.New("?"), false); !write.Unknown || write.Status != 504 || read.Unknown {
		t.Errorf("write %+v, read %+v", write, read)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
