package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"testing"
)

// Whatever the short way reads as a request, net/http reads as the same one.
func FuzzDesk(f *testing.F) {
	for _, text := range []string{
		"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /rest/flag_type/A%2FB%20c/d%21!?a=b HTTP/1.1\r\nHost: x:80\r\nAccept: a\r\naccept:b \r\n\r\n",
		"GET //x?y=z? HTTP/1.1\r\nHost: [::1]\r\nConnection: Keep-Alive\r\nX_y: 1\r\n\r\n",
		"GET /? HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n",
		"GET /a#b HTTP/1.1\r\nHost: x\r\nTE: z\r\nUser-Agent:\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	desks := newDesks()
	f.Fuzz(func(t *testing.T, text []byte) {
		d := desks.Get().(*desk)
		defer desks.Put(d)
		if !isWholeGet(text) {
			return
		}
		got := d.open(text, "client")
		if got == nil {
			return
		}
		reader := bufio.NewReader(bytes.NewReader(text))
		want, err := http.ReadRequest(reader)
		if err != nil || want.Close || want.ContentLength != 0 || reader.Buffered() > 0 {
			t.Fatalf("net/http takes %q for %+v, %v", text, want, err)
		}
		if got.Method != want.Method || got.RequestURI != want.RequestURI || got.Host != want.Host || got.Proto != want.Proto ||
			*got.URL != *want.URL || got.URL.EscapedPath() != want.URL.EscapedPath() || !reflect.DeepEqual(got.Header, want.Header) {
			t.Errorf("%q is\n%+v, net/http has\n%+v", text, got, want)
		}
	})
}
