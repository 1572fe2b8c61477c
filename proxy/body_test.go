package proxy_test

import (
	"bytes"
	"context"
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
	var got created
	base := serve(t, proxy.Options{Tracker: recordCreates(&got)}) + "/rest/bug/7/attachment" + key
	form := []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}
	ask(t, "POST", base, "data=c29tZQ%3D%3D&file_name=f.txt&summary=a+form%C3%A9&is_patch=1;ids=7&ids=8&x=1&x=2&lone&=", form...).wantStatus(t, 201)
	if got.content != "c29tZQ==" || *got.Summary != "a formé" || !*got.IsPatch || !reflect.DeepEqual(got.Bugs, []string{"7", "8"}) {
		t.Errorf("got %+v", got)
	}
	if string(got.Extra.Get("x")) != `["1","2"]` || string(got.Extra.Get("lone")) != `""` {
		t.Errorf("extra %s", got.Extra.AppendJSON(nil))
	}
	// A plus in base64 must not become a blank.
	ask(t, "POST", base, "data=++++&file_name=f&summary=s&is_patch=1", form...).wantStatus(t, 201)
	if got.content != "++++" {
		t.Errorf("content %q", got.content)
	}
	ask(t, "POST", base, "data=%25%25&file_name=f&summary=s&is_patch=1", form...).wantError(t, 400, "606")
	ask(t, "POST", base, "data=c29tZQ&file_name=%ff&summary=s&is_patch=1", form...).wantError(t, 400, "32000")
	ask(t, "POST", base, strings.Repeat("a=b&", 2000), form...).wantError(t, 413, "200413")
}

func TestFlagTypeForm(t *testing.T) {
	var got mapping.FlagTypeCreate
	tracker := &fakeTracker{createFlagType: func(_ context.Context, _ upstream.Caller, request mapping.FlagTypeCreate) (mapping.Reply, error) {
		got = request
		return mapping.Reply{Document: document(`{"id":1}`)}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker})
	ask(t, "POST", base+"/rest/flag_type"+key, "name=n&description=d&sortkey=3&inclusions=P&cc_list=a@b.example&cc_list=c@d.example",
		"Content-Type", "application/x-www-form-urlencoded").wantStatus(t, 201)
	if *got.Sortkey != 3 || len(*got.Inclusions) != 1 || *got.CCList != "a@b.example, c@d.example" {
		t.Errorf("got %+v", got)
	}
}

func TestMultipartForm(t *testing.T) {
	var got created
	base := serve(t, proxy.Options{Tracker: recordCreates(&got)}) + "/rest/bug/7/attachment" + key
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, _ := form.CreateFormFile("data", "ignored.bin")
	_, _ = file.Write([]byte("c29t\r\nZQ=="))
	for name, value := range map[string]string{"file_name": "f.txt", "summary": "s", "content_type": "text/plain"} {
		_ = form.WriteField(name, value)
	}
	_ = form.Close()
	ask(t, "POST", base, body.String(), "Content-Type", form.FormDataContentType()).wantStatus(t, 201)
	if got.content != "c29tZQ==" || *got.FileName != "f.txt" {
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
	var got mapping.AttachmentUpdate
	tracker := &fakeTracker{updateAttachments: func(_ context.Context, _ upstream.Caller, request mapping.AttachmentUpdate) (mapping.Reply, error) {
		got = request
		return mapping.Reply{Document: document(`{"attachments":[]}`)}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/bug/attachment/5" + key
	ask(t, "PUT", base+"&summary=q&summary=r&ids=5&ids=6&odd=cb&login=x", `{"summary":"b","file_name":"f"}`).wantStatus(t, 200)
	if *got.Summary != "q" || *got.FileName != "f" || !reflect.DeepEqual(got.IDs, []int64{5, 6}) {
		t.Errorf("got %+v", got)
	}
	// What the tracker does not know must reach it, since it refuses that (code 67399); credentials must not.
	if string(got.Extra.Get("odd")) != `"cb"` || len(got.Extra) != 1 {
		t.Errorf("extra %s", got.Extra.AppendJSON(nil))
	}
	// A create ignores a callback, but does not send it on.
	var sent created
	other := serve(t, proxy.Options{Tracker: recordCreates(&sent)})
	ask(t, "POST", other+"/rest/bug/7/attachment"+key+"&callback=cb", attachmentBody).wantStatus(t, 201)
	if sent.Extra.Get("callback") != nil {
		t.Error("a callback was sent on")
	}
	ask(t, "POST", other+"/rest/bug/7/attachment?data=c29tZQ%3D%3D&file_name=q&summary=s&is_patch=1&api_key=K", "").wantStatus(t, 201)
	if sent.content != "c29tZQ==" {
		t.Errorf("content %q", sent.content)
	}
	framed := ask(t, "PUT", base+"&callback=cb", `{}`)
	if framed.status != 400 || !strings.HasPrefix(framed.body, `/**/cb({"error":true,"code":67399,`) {
		t.Errorf("a callback on an update: %+v", framed)
	}
	ask(t, "PUT", base+"&summary=%ff", `{}`).wantError(t, 400, "32000")
}

// A tracker that gets a callback frames its response, which then looks like no response at all.
func TestCallbackInTheBody(t *testing.T) {
	var made created
	var flagType mapping.FlagTypeCreate
	tracker := recordCreates(&made)
	tracker.createFlagType = func(_ context.Context, _ upstream.Caller, request mapping.FlagTypeCreate) (mapping.Reply, error) {
		flagType = request
		return mapping.Reply{Document: document(`{"id":1}`)}, nil
	}
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
		if len(made.Extra)+len(flagType.Extra) > 0 {
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
		request, err := http.NewRequest("POST", create, strings.NewReader(`{"data":"`+long+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if !length {
			request.ContentLength = -1
		}
		response := send(t, request)
		response.wantError(t, 413, "200413")
		if got := response.header.Get("Portico-Error"); got != "too-large" {
			t.Errorf("Portico-Error %q", got)
		}
	}
	ask(t, "POST", create, `{"summary":"`+strings.Repeat("s", 200)+`"}`).wantError(t, 413, "200413")
	ask(t, "POST", create, "summary="+strings.Repeat("s", 200), "Content-Type", "application/x-www-form-urlencoded").wantError(t, 413, "200413")
	ask(t, "POST", create, "data="+long, "Content-Type", "application/x-www-form-urlencoded").wantError(t, 413, "200413")
	ask(t, "GET", base+"/rest/bug/1/attachment?ids=2&ids=3&attachment_ids=4", "").wantError(t, 413, "200413")
	ask(t, "PUT", base+"/rest/flag_type/1"+key, `{"ids":[2,3],"names":["a"]}`).wantError(t, 413, "200413")
	ask(t, "PUT", base+"/rest/bug/attachment/1"+key, `{"ids":[1,2,3,4]}`).wantError(t, 413, "200413")
	ask(t, "GET", base+"/rest/bug/1/attachment?ids=2&attachment_ids=4", "").wantStatus(t, 200)
}

func TestLargePayloadGoesThroughAFile(t *testing.T) {
	var got created
	dir := t.TempDir()
	base := serve(t, proxy.Options{Tracker: recordCreates(&got), BlobDir: dir, Limits: proxy.Limits{Limits: jsonblob.Limits{BlobMemory: 16}}})
	content := strings.Repeat("QUJD", 50000)
	for _, c := range [][2]string{
		{`{"file_name":"f","summary":"s","is_patch":true,"data":"` + content + `"}`, "application/json"},
		{"file_name=f&summary=s&is_patch=1&data=" + content, "application/x-www-form-urlencoded"},
	} {
		ask(t, "POST", base+"/rest/bug/7/attachment"+key, c[0], "Content-Type", c[1]).wantStatus(t, 201)
		if got.content != content || got.Data.Size() != 150000 {
			t.Errorf("%s: %d bytes arrived", c[1], len(got.content))
		}
		if _, err := got.Data.Reader().Read(make([]byte, 1)); err == nil {
			t.Error("the payload was not put away")
		}
	}
}

// A response that is longer than net/http keeps back is sent while the handler runs, and net/http wants the rest of the body first.
func TestLongRefusalOfAPendingBody(t *testing.T) {
	options := proxy.Options{}
	options.ClientPause.Sending = 50 * time.Millisecond
	client := dial(t, serve(t, options))
	got := client.exchange(t, "POST /"+strings.Repeat("%01", 1000)+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na")
	got.wantError(t, 404, "32614")
}

// What a refusal has waited for the body is no part of the time that the client has to take it.
func TestRefusalOutlastsThePauseForItsBody(t *testing.T) {
	t.Parallel()
	options := proxy.Options{ClientPause: proxy.ClientPause{Sending: 500 * time.Millisecond, Taking: 500 * time.Millisecond}}
	client := dial(t, serve(t, options))
	got := client.exchange(t, "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na")
	got.wantError(t, 404, "32614")
}
