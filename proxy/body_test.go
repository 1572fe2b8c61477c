package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/proxy"
	"portico/upstream"
)

const attachmentBody = `{"data":"c29tZQ==","file_name":"f","summary":"s","content_type":"text/plain"}`

func TestCompressedBodiesAreRefused(t *testing.T) {
	base := serve(t, proxy.Options{})
	ask(t, "PUT", base+"/rest/bug/attachment/5"+key, "x", "Content-Encoding", "gzip").wantError(t, 400, "32000")
	ask(t, "PUT", base+"/rest/bug/attachment/5"+key, "{}", "Content-Encoding", "identity").wantStatus(t, 200)
}

func TestURLEncodedForm(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/bug/7/attachment" + key
	form := []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}
	ask(t, "POST", base, "data=c29tZQ%3D%3D&file_name=f.txt&summary=a+form%C3%A9&is_patch=1;ids=7&ids=8&x=1&x=2&lone&=", form...).wantStatus(t, 201)
	got := tracker.last.CreateAttachment
	if tracker.content != "c29tZQ==" || *got.Summary != "a formé" || !*got.IsPatch || !reflect.DeepEqual(got.Bugs, []string{"7", "8"}) {
		t.Errorf("got %+v", got)
	}
	if string(got.Extra.Get("x")) != `["1","2"]` || string(got.Extra.Get("lone")) != `""` {
		t.Errorf("extra %s", got.Extra.AppendJSON(nil))
	}
	// A plus in base64 must not become a blank.
	ask(t, "POST", base, "data=++++&file_name=f&summary=s&is_patch=1", form...).wantStatus(t, 201)
	if tracker.content != "++++" {
		t.Errorf("content %q", tracker.content)
	}
	ask(t, "POST", base, "data=%25%25&file_name=f&summary=s&is_patch=1", form...).wantError(t, 400, "606")
	ask(t, "POST", base, "data=c29tZQ&file_name=%ff&summary=s&is_patch=1", form...).wantError(t, 400, "32000")
	ask(t, "POST", base, strings.Repeat("a=b&", 2000), form...).wantError(t, 413, "200413")
}

func TestFlagTypeForm(t *testing.T) {
	tracker := &fakeTracker{}
	ask(t, "POST", serve(t, proxy.Options{Tracker: tracker})+"/rest/flag_type"+key, "name=n&description=d&sortkey=3&inclusions=P&cc_list=a@b.example&cc_list=c@d.example",
		"Content-Type", "application/x-www-form-urlencoded").wantStatus(t, 201)
	if got := tracker.last.CreateFlagType; *got.Sortkey != 3 || len(*got.Inclusions) != 1 || *got.CCList != "a@b.example, c@d.example" {
		t.Errorf("got %+v", got)
	}
}

func TestMultipartForm(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/bug/7/attachment" + key
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, _ := form.CreateFormFile("data", "ignored.bin")
	_, _ = file.Write([]byte("c29t\r\nZQ=="))
	for name, value := range map[string]string{"file_name": "f.txt", "summary": "s", "content_type": "text/plain"} {
		_ = form.WriteField(name, value)
	}
	_ = form.Close()
	ask(t, "POST", base, body.String(), "Content-Type", form.FormDataContentType()).wantStatus(t, 201)
	if got := tracker.last.CreateAttachment; tracker.content != "c29tZQ==" || *got.FileName != "f.txt" {
		t.Errorf("got %+v", got)
	}
	lastBoundary := strings.LastIndex(body.String(), "--"+form.Boundary())
	for name, cut := range map[string]int{"in the last boundary": body.Len() - 20, "between two fields": lastBoundary + len("--"+form.Boundary())} {
		got := ask(t, "POST", base, body.String()[:cut]+"\r\n", "Content-Type", form.FormDataContentType())
		if got.status != 400 {
			t.Errorf("cut %s: %d %s", name, got.status, got.body)
		}
	}
	ask(t, "POST", base, strings.TrimRight(body.String(), "\r\n"), "Content-Type", form.FormDataContentType()).wantStatus(t, 201)
	ask(t, "POST", base, body.String(), "Content-Type", "multipart/form-data").wantError(t, 400, "32000")
}

func TestQueryBeatsBody(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/bug/attachment/5" + key
	ask(t, "PUT", base+"&summary=q&summary=r&ids=5&ids=6&odd=cb&login=x", `{"summary":"b","file_name":"f"}`).wantStatus(t, 200)
	got := tracker.last.UpdateAttachments
	if *got.Summary != "q" || *got.FileName != "f" || !reflect.DeepEqual(got.IDs, []int64{5, 6}) {
		t.Errorf("got %+v", got)
	}
	// What the tracker does not know must reach it, since it refuses that (code 67399); credentials must not.
	if string(got.Extra.Get("odd")) != `"cb"` || len(got.Extra) != 1 {
		t.Errorf("extra %s", got.Extra.AppendJSON(nil))
	}
	// A create ignores a callback, but does not send it on.
	create := strings.Replace(base, "attachment/5", "7/attachment", 1)
	ask(t, "POST", create+"&callback=cb", attachmentBody).wantStatus(t, 201)
	if tracker.last.CreateAttachment.Extra.Get("callback") != nil {
		t.Error("a callback was sent on")
	}
	ask(t, "POST", create+"&data=cXVlcnk%3D&file_name=q&summary=s&is_patch=1", "").wantStatus(t, 201)
	if tracker.content != "cXVlcnk=" {
		t.Errorf("content %q", tracker.content)
	}
	framed := ask(t, "PUT", base+"&callback=cb", `{}`)
	if framed.status != 400 || !strings.HasPrefix(framed.body, `/**/cb({"error":true,"code":67399,`) {
		t.Errorf("a callback on an update: %+v", framed)
	}
	ask(t, "PUT", base+"&summary=%ff", `{}`).wantError(t, 400, "32000")
}

// A tracker that gets a callback frames its response, which then looks like no response at all.
func TestCallbackInTheBody(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ path, kind, body, want string }{
		{"/rest/bug/7/attachment" + key, "", strings.Replace(attachmentBody, "{", `{"callback":"cb",`, 1), "/**/cb({"},
		{"/rest/bug/7/attachment" + key, form, "data=c29tZQ&file_name=f&summary=s&is_patch=1&callback=cb", "/**/cb({"},
		{"/rest/bug/7/attachment" + key, "", strings.Replace(attachmentBody, "{", `{"callback":null,`, 1), "{"},
		{"/rest/bug/7/attachment" + key + "&callback=q", "", strings.Replace(attachmentBody, "{", `{"callback":"cb",`, 1), "/**/q({"},
		{"/rest/flag_type" + key, "", `{"name":"n","description":"d","inclusions":["P"],"callback":"cb"}`, "/**/cb({"},
		{"/rest/flag_type" + key, form, "name=n&description=d&inclusions=P&callback=cb", "/**/cb({"},
	} {
		response := ask(t, "POST", base+c.path, c.body, "Content-Type", c.kind)
		if response.status/100 != 2 || !strings.HasPrefix(response.body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, response.status, response.body)
		}
		if made, flagType := tracker.last.CreateAttachment, tracker.last.CreateFlagType; made != nil && len(made.Extra) > 0 || flagType != nil && len(flagType.Extra) > 0 {
			t.Fatalf("%s %s: a callback was sent on", c.path, c.body)
		}
	}
	for _, value := range []string{`"a b"`, `["a","b"]`, `{}`} {
		ask(t, "POST", base+"/rest/flag_type"+key, `{"name":"n","description":"d","callback":`+value+`}`).wantError(t, 400, "32611")
	}
	before := len(tracker.asked())
	for _, path := range []string{"/rest/bug/attachment/5", "/rest/flag_type/5"} {
		framed := ask(t, "PUT", base+path+key, `{"callback":"cb"}`)
		if framed.status != 400 || !strings.HasPrefix(framed.body, `/**/cb({"error":true,"code":67399,`) {
			t.Errorf("a callback on an update: %+v", framed)
		}
		ask(t, "PUT", base+path+key, `{"callback":null}`).wantError(t, 400, "67399")
	}
	if asked := tracker.asked(); len(asked) != before {
		t.Errorf("updates with a callback reached the tracker: %v", asked[before:])
	}
}

func TestLimits(t *testing.T) {
	base := serve(t, proxy.Options{Limits: proxy.Limits{Limits: jsonblob.Limits{Body: 400, String: 100, Skeleton: 150}, IDs: 3}})
	create := base + "/rest/bug/7/attachment" + key
	long := strings.Repeat("AAAA", 200)
	for _, length := range []bool{true, false} {
		request := newRequest(t, "POST", create, strings.NewReader(`{"data":"`+long+`"}`))
		if !length {
			request.ContentLength = -1
		}
		response := send(t, request)
		response.wantError(t, 413, "200413")
		if got := response.header.Get("Portico-Error"); got != "too-large" {
			t.Errorf("Portico-Error %q", got)
		}
	}
	for length, status := range map[int]int{100: 400, 101: 413} { // the first one lacks the content
		text := strings.Repeat("s", length)
		ask(t, "POST", create, `{"summary":"`+text+`"}`).wantStatus(t, status)
		ask(t, "POST", create, "summary="+text, "Content-Type", "application/x-www-form-urlencoded").wantStatus(t, status)
	}
	ask(t, "POST", create, "data="+long, "Content-Type", "application/x-www-form-urlencoded").wantError(t, 413, "200413")
	ask(t, "GET", base+"/rest/bug/1/attachment?ids=2&ids=3&attachment_ids=4", "").wantError(t, 413, "200413")
	ask(t, "PUT", base+"/rest/flag_type/1"+key, `{"ids":[2,3],"names":["a"]}`).wantError(t, 413, "200413")
	ask(t, "PUT", base+"/rest/bug/attachment/1"+key, `{"ids":[1,2,3,4]}`).wantError(t, 413, "200413")
	ask(t, "GET", base+"/rest/bug/1/attachment?ids=2&attachment_ids=4", "").wantStatus(t, 200)
}

func TestLargePayloadGoesThroughAFile(t *testing.T) {
	tracker := &fakeTracker{}
	dir := t.TempDir()
	base := serve(t, proxy.Options{Tracker: tracker, BlobDir: dir, Limits: proxy.Limits{Limits: jsonblob.Limits{BlobMemory: 16}}})
	content := strings.Repeat("QUJD", 50000)
	for _, c := range [][2]string{
		{`{"file_name":"f","summary":"s","is_patch":true,"data":"` + content + `"}`, "application/json"},
		{"file_name=f&summary=s&is_patch=1&data=" + content, "application/x-www-form-urlencoded"},
	} {
		ask(t, "POST", base+"/rest/bug/7/attachment"+key, c[0], "Content-Type", c[1]).wantStatus(t, 201)
		data := tracker.last.CreateAttachment.Data
		if tracker.content != content || data.Size() != 150000 {
			t.Errorf("%s: %d bytes arrived", c[1], len(tracker.content))
		}
		if _, err := data.Reader().Read(make([]byte, 1)); err == nil {
			t.Error("the payload was not put away")
		}
	}
}

// A refusal that is longer than net/http keeps back is sent while the handler runs, and net/http wants the rest of the body first. What it has
// waited for that is no part of the time that the client has to take the response.
func TestRefusalOfAPendingBody(t *testing.T) {
	t.Parallel()
	options := proxy.Options{ClientPause: proxy.ClientPause{Sending: 500 * time.Millisecond, Taking: 500 * time.Millisecond}}
	base := serve(t, options)
	for _, path := range []string{"nowhere", strings.Repeat("%01", 1000)} {
		dial(t, base).exchange(t, "POST /"+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na").wantError(t, 404, "32614")
	}
}

// Bodies that are being read share one amount of memory, and small ones need none of it.
func TestBodiesShareMemory(t *testing.T) {
	const half = 600 << 10
	for name, c := range map[string]struct{ kind, open, large, small string }{
		"JSON": {"application/json", `{"name":"n","description":"`, `{"name":"n","x":"` + strings.Repeat("b", half) + `","description":"d"}`, flagTypeBody},
		"form": {"application/x-www-form-urlencoded", `name=n&description=`, `name=n&description=d&x=` + strings.Repeat("b", half), `name=n&description=d`},
	} {
		t.Run(name, func(t *testing.T) {
			options := proxy.Options{Tracker: &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
				if call.Operation == mapping.OpAttachment {
					return says(`{"bugs":{},"attachments":{"1":{"summary":"` + strings.Repeat("b", half) + `"}}}`)
				}
				return success(call.Operation)
			}}}
			options.Limits.Memory = 1 << 20
			base := serve(t, options)
			post := func(body string) reply {
				return ask(t, "POST", base+"/rest/flag_type", body, "Content-Type", c.kind, "X-Bugzilla-Api-Key", "k")
			}
			var client *kept
			refused := until(t, func() (reply, bool) {
				if client == nil || client.responded() { // another one's body was there first
					client = dial(t, base)
					fmt.Fprintf(client, "POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nX-Bugzilla-Api-Key: k\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\n%s%s",
						c.kind, c.open, strings.Repeat("b", half))
				}
				got := post(c.large)
				return got, got.status == 503
			})
			refused.wantError(t, 503, "200503")
			if refused.header.Get("Portico-Error") != "overload" || refused.header.Get("Retry-After") != "1" {
				t.Errorf("headers %v", refused.header)
			}
			if got := post(c.small); got.status >= 300 {
				t.Errorf("a small request got %d %s", got.status, got.body)
			}
			if got := ask(t, "GET", base+"/rest/bug/attachment/1", ""); got.status != 200 { // responses have as much of their own
				t.Errorf("a read got %d %s", got.status, got.body)
			}
			_ = client.Close()
			until(t, func() (reply, bool) { got := post(c.large); return got, got.status != 503 })
		})
	}
}

// responded reports whether a response has come already.
func (k *kept) responded() bool {
	_ = k.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := k.reader.Peek(1)
	return err == nil
}

const flagTypeBody = `{"name":"n","description":"d"}`

// until asks again until a response is the one that is waited for.
func until(t *testing.T, ask func() (reply, bool)) reply {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got, done := ask()
		if done {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("still %d %s", got.status, got.body)
		}
	}
}

// All the fields of a form together are bounded as a JSON body is. Many short members take more memory than their text, and the header of a field is
// held as its text is.
func TestFormsAreBounded(t *testing.T) {
	form := func(fields int) string {
		return "name=n&description=d&Bugzilla_api_key=k" + strings.Repeat("&x="+strings.Repeat("b", 60<<10), fields)
	}
	members := func(many int) string {
		var others strings.Builder
		for i := range many {
			fmt.Fprintf(&others, `,"%d":1`, i)
		}
		return `{"name":"n","description":"d"` + others.String() + `}`
	}
	header := func(long int) string {
		return "--x\r\nContent-Disposition: form-data; name=name\r\nX-Long: " + strings.Repeat("b", long) + "\r\n\r\nn\r\n" +
			"--x\r\nContent-Disposition: form-data; name=description\r\n\r\nd\r\n--x--\r\n"
	}
	for name, c := range map[string]struct {
		limits       proxy.Limits
		media        string
		small, large string
		status       int
	}{
		"fields":  {proxy.Limits{Limits: jsonblob.Limits{Skeleton: 100 << 10}}, "application/x-www-form-urlencoded", form(1), form(2), 413},
		"members": {proxy.Limits{Memory: 1 << 20}, "application/json", members(3_000), members(30_000), 503},
		"headers": {proxy.Limits{Memory: 64 << 10}, "multipart/form-data; boundary=x", header(10 << 10), header(1 << 20), 503},
	} {
		base := serve(t, proxy.Options{Limits: c.limits})
		if got := ask(t, "POST", base+"/rest/flag_type"+key, c.small, "Content-Type", c.media); got.status != 201 {
			t.Errorf("%s in %d bytes: %d %s", name, len(c.small), got.status, got.body)
		}
		ask(t, "POST", base+"/rest/flag_type"+key, c.large, "Content-Type", c.media).wantError(t, c.status, fmt.Sprint(200_000+c.status))
	}
}

// A client that looks at a response only when it has sent everything gets it.
func TestRefusalOfALargeBodyArrives(t *testing.T) {
	t.Parallel()
	const large = 12 << 20
	for name, c := range map[string]struct {
		head   string
		status int
		limit  int64
	}{
		"too many calls":   {"GET /rest/flag_type/P HTTP/1.1\r\nContent-Type: application/json\r\nX-Bugzilla-Api-Key: k\r\n", 429, 0},
		"no such method":   {"DELETE /rest/flag_type/1 HTTP/1.1\r\n", 404, 0},
		"compressed":       {"POST /rest/flag_type HTTP/1.1\r\nContent-Encoding: gzip\r\nX-Bugzilla-Api-Key: other\r\n", 400, 0},
		"too large":        {"POST /rest/bug/7/attachment HTTP/1.1\r\nX-Bugzilla-Api-Key: other\r\n", 413, 8 << 20},
		"no JSON":          {"POST /rest/flag_type HTTP/1.1\r\nX-Bugzilla-Api-Key: other\r\n", 400, 0},
		"a read of it all": {"GET /rest/flag_type/P HTTP/1.1\r\n", 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := proxy.Options{Rates: proxy.RateLimits{Keyed: proxy.Rate{PerSecond: 1, Burst: 1}}}
			options.Limits.Body = c.limit
			base := serve(t, options)
			text := c.head + fmt.Sprintf("Host: x\r\nContent-Length: %d\r\n\r\n", large) + strings.Repeat("x", large)
			if c.status == http.StatusTooManyRequests {
				ask(t, "GET", base+"/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "k")
			}
			client := dial(t, base)
			_ = client.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(client, text); err != nil {
				t.Fatal("sending: ", err)
			}
			if got := client.exchange(t, ""); got.status != c.status {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// So does one that was told to go on and sends everything then, as the clients of some libraries do.
func TestRefusalAfterContinueArrives(t *testing.T) {
	const large = 12 << 20
	base := serve(t, proxy.Options{})
	client := dial(t, base)
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	head := fmt.Sprintf("POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", large)
	if _, err := io.WriteString(client, head); err != nil {
		t.Fatal(err)
	}
	if line, err := client.reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = client.reader.ReadString('\n')
	if _, err := io.WriteString(client, strings.Repeat("x", large)); err != nil {
		t.Fatal("sending: ", err)
	}
	if got := client.response(t); got.status != http.StatusBadRequest {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A client that stops sending at a refusal sees where the response ends, in whatever form it is.
func TestRefusalOfALargeBodyEnds(t *testing.T) {
	t.Parallel()
	base := serve(t, proxy.Options{})
	for _, accept := range []string{"application/json", "text/html", "text/javascript"} {
		client := dial(t, base)
		_ = client.SetDeadline(time.Now().Add(20 * time.Second))
		got := client.exchange(t, "DELETE /rest/flag_type/1 HTTP/1.1\r\nHost: x\r\nAccept: "+accept+"\r\nContent-Length: 12000000\r\n\r\nbegun")
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "32614") {
			t.Errorf("%s: %d %s", accept, got.status, got.body)
		}
	}
}
