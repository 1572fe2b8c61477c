package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

// Whatever a client sends, the answer is JSON in the tracker's shape or a success, and never Portico's own failure.
func FuzzRequests(f *testing.F) {
	handler, err := proxy.New(proxy.Options{Tracker: &fakeTracker{}, Limits: proxy.Limits{Limits: mapping.Limits{Body: 1 << 20}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][4]string{
		{"GET", "/rest/flag_type/P?callback=x", "", ""},
		{"POST", "/rest/flag_type?api_key=K", "application/json", `{"name":"n","description":"d","inclusions":{"P":["c"]}}`},
		{"PUT", "/rest/flag_type/1?api_key=K", "text/plain", `{"ids":[1],"cc_list":["a@b"],"sortkey":1.5e3}`},
		{"POST", "/rest/bug/5/attachment", "application/json", `{"api_key":"K","data":"QUJD","ids":[5,"6"],"flags":[{"name":"r","status":"?"}]}`},
		{"PUT", "/rest/bug/attachment/5?api_key=K&ids=5", "application/x-www-form-urlencoded", "summary=a&is_patch=1"},
		{"POST", "/rest/bug/5/attachment?api_key=K", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\nQUJD\r\n--x--"},
		{"OPTIONS", "//rest/%62ug/%2e/attachment/1", "", ""}, {"GET", "/rest/bug/5/attachment?ids=%zz;include_fields=a+b", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, target, kind, body string) {
		request, err := http.NewRequestWithContext(context.Background(), method, "http://x"+target, strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", kind)
		request.RequestURI = target
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code >= 500 || answer.Code < 200 {
			t.Fatalf("%s %q %q %q: %d %s", method, target, kind, body, answer.Code, answer.Body)
		}
		text := answer.Body.String()
		framed := strings.HasPrefix(text, "/**/")
		if answer.Code >= 400 && method != http.MethodHead && !framed && !strings.HasPrefix(text, `{"error":true,"code":`) {
			t.Fatalf("%s %q: %d %s", method, target, answer.Code, text)
		}
	})
}
