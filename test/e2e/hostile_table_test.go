package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// ending closes the head of a request, and the connection after its answer.
const ending = "Host: portico.example\r\nConnection: close\r\n\r\n"

// hostileRequests are the rows of docs/evidence/security.md, Hostile requests. ELSEWHERE is a host that must not be called.
func hostileRequests() []hostile {
	return append(append(framing(), heads()...), targets()...)
}

// framing are requests that two readers could cut at different places.
func framing() []hostile {
	const post = "POST /xmlrpc.cgi HTTP/1.1\r\nHost: portico.example\r\nConnection: close\r\n"
	body := func(want string) func(*testing.T, witnessed) {
		return func(t *testing.T, got witnessed) {
			if got.body != want {
				t.Errorf("the tracker got the body %q, want %q", got.body, want)
			}
		}
	}
	return []hostile{
		{name: "lines that end with a bare LF", text: "GET /page.cgi HTTP/1.1\nHost: portico.example\nConnection: close\n\n", answer: "200", tracker: "GET /page.cgi"},
		{name: "a bare CR within a header", text: "GET /page.cgi HTTP/1.1\r\nX: a\rY: b\r\n" + ending, answer: "400, code 32000"},
		{name: "Content-Length with Transfer-Encoding", text: post + "Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", answer: "200", tracker: "POST /xmlrpc.cgi", look: body("abc")},
		{name: "Content-Length with Transfer-Encoding, and another request", text: strings.Replace(post, "Connection: close\r\n", "", 1) + "Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n" + ending, answer: "200", tracker: "POST /xmlrpc.cgi", look: body("abc")},
		{name: "Transfer-Encoding alone, and another request", text: strings.Replace(post, "Connection: close\r\n", "", 1) + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /page.cgi HTTP/1.1\r\n" + ending, answer: "200", tracker: "POST /xmlrpc.cgi"},
		{name: "Transfer-Encoding in HTTP/1.0, and another request", text: "POST /xmlrpc.cgi HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\nGET /smuggled HTTP/1.1\r\n" + ending, answer: "200", tracker: "POST /xmlrpc.cgi"},
		{name: "Content-Length with Transfer-Encoding in HTTP/1.0, and another request", text: "POST /xmlrpc.cgi HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabcGET /smuggled HTTP/1.1\r\n" + ending, answer: "200", tracker: "POST /xmlrpc.cgi", look: body("abc")},
		{name: "two Content-Length, the same", text: post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", answer: "200", tracker: "POST /xmlrpc.cgi", look: body("abc")},
		{name: "two Content-Length, different", text: post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", answer: "400, code 32000"},
		{name: "Content-Length with a sign", text: post + "Content-Length: +3\r\n\r\nabc", answer: "400, code 32000"},
		{name: "Content-Length as a list", text: post + "Content-Length: 3, 3\r\n\r\nabc", answer: "400, code 32000"},
		{name: "an unknown Transfer-Encoding", text: post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", answer: "501, code 200501"},
		{name: "Transfer-Encoding twice", text: post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", answer: "501, code 200501"},
		{name: "Transfer-Encoding with a blank before the colon", text: post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", answer: "400, code 32000"},
		{name: "an invalid chunk size", text: post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", answer: "400, code 32000"},
		{name: "a chunk size that ends with a bare LF", text: post + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", answer: "400, code 32000"},
		{name: "a body that ends early", text: post + "Content-Length: 10\r\n\r\nabc", answer: "408, code 200408"},
		{name: "a body on GET", text: "GET /page.cgi HTTP/1.1\r\nContent-Length: 37\r\n" + ending + "GET /smuggled HTTP/1.1\r\nHost: x.org\r\n\r\n", answer: "200", tracker: "GET /page.cgi"},
		{name: "requests in a row without waiting", text: "GET /page.cgi?1 HTTP/1.1\r\nHost: portico.example\r\n\r\nGET /page.cgi?2 HTTP/1.1\r\n" + ending, answer: "200 + 200", tracker: "GET /page.cgi?1 + GET /page.cgi?2"},
		{name: "Expect: 100-continue", text: post + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", answer: "100 + 200", tracker: "POST /xmlrpc.cgi", look: body("abc")},
		{name: "Expect: something else", text: post + "Expect: wonders\r\nContent-Length: 3\r\n\r\nabc", answer: "417, code 200417"},
		{name: "Expect: something else, and a body that does not come", text: strings.Replace(post, "Connection: close\r\n", "", 1) + "Expect: wonders\r\nContent-Length: 3\r\n\r\n", answer: "417, code 200417"},
		{name: "a head that does not come to an end", text: "GET /page.cgi HTTP/1.1\r\nHost: portico.example\r\nX: ", answer: "closed"},
		{name: "a connection that says nothing", text: "", answer: "closed"},
	}
}

// heads are requests whose headers are not what they should be.
func heads() []hostile {
	get := func(header string) string { return "GET /page.cgi HTTP/1.1\r\n" + header + "\r\n" + ending }
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "X-%d: y\r\n", i)
	}
	const page = "GET /page.cgi"
	return []hostile{
		{name: "a folded header", text: get("X-Folded: a\r\n b"), answer: "200", tracker: page, look: wantHeader("X-Folded", "a b")},
		{name: "a folded first header", text: "GET /page.cgi HTTP/1.1\r\n X: y\r\n" + ending, answer: "400, code 32000"},
		{name: "two Host headers", text: get("Host: other.example"), answer: "400, code 32000"},
		{name: "no Host header", text: "GET /page.cgi HTTP/1.1\r\nConnection: close\r\n\r\n", answer: "400, code 32000"},
		{name: "an invalid Host header", text: "GET /page.cgi HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", answer: "400, code 32000"},
		{name: "the Host of another site", text: "GET /page.cgi HTTP/1.1\r\nHost: ELSEWHERE\r\nConnection: close\r\n\r\n", answer: "200", tracker: page},
		{name: "X-Forwarded-* of an untrusted client", text: get("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: ELSEWHERE\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1;host=ELSEWHERE"), answer: "200", tracker: page, look: wantHeader("X-Forwarded-Host", "portico.example")},
		{name: "X-Forwarded-For named in Connection", text: "GET /page.cgi HTTP/1.1\r\nHost: portico.example\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close, X-Forwarded-For, X-Request-Id\r\n\r\n", answer: "200", tracker: page, look: wantHeader("X-Forwarded-For", "127.0.0.1")},
		{name: "X-Original-URL and X-Rewrite-URL", text: get("X-Original-URL: http://ELSEWHERE/\r\nX-Rewrite-URL: /rest/bug/attachment"), answer: "200", tracker: page},
		{name: "NUL in a header", text: get("X: a\x00b"), answer: "400, code 32000"},
		{name: "a header name with a blank", text: get("X Y: z"), answer: "400, code 32000"},
		{name: "a header without a name", text: get(": z"), answer: "400, code 32000"},
		{name: "a head beyond limits.header", text: get("X: " + strings.Repeat("y", 16<<10)), answer: "431, code 200431"},
		{name: "1000 headers within limits.header", text: get(strings.TrimSuffix(many.String(), "\r\n")), answer: "200", tracker: page},
		{name: "an upgrade to another protocol", text: "GET /page.cgi HTTP/1.1\r\nHost: portico.example\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n", answer: "200", tracker: page},
		{name: "an upgrade to HTTP/2", text: "GET /page.cgi HTTP/1.1\r\nHost: portico.example\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n", answer: "200", tracker: page},
		{name: "TE", text: get("TE: trailers"), answer: "200", tracker: page},
		{name: "the preface of HTTP/2", text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", answer: "400, code 32000"},
	}
}

// targets are requests whose path the tracker does not have.
func targets() []hostile {
	get := func(target string) string { return "GET " + target + " HTTP/1.1\r\n" + ending }
	const page = "GET /page.cgi"
	return []hostile{
		{name: "a whole address as the target", text: get("http://ELSEWHERE/page.cgi"), answer: "200", tracker: page},
		{name: "a whole address with name and password", text: get("http://me:secret@ELSEWHERE/page.cgi"), answer: "200", tracker: page, look: wantHeader("Authorization", "")},
		{name: "a target that begins with two slashes", text: get("//ELSEWHERE/page.cgi"), answer: "200", tracker: "GET /ELSEWHERE/page.cgi"},
		{name: "a target without a slash", text: get("page.cgi"), answer: "400, code 32000"},
		{name: "GET *", text: get("*"), answer: "400, code 32000"},
		{name: "OPTIONS *", text: "OPTIONS * HTTP/1.1\r\n" + ending, answer: "200"},
		{name: "OPTIONS * with Content-Length and Transfer-Encoding, and another request", text: "OPTIONS * HTTP/1.1\r\nHost: portico.example\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n" + ending, answer: "200"},
		{name: "OPTIONS * with a body that does not come", text: "OPTIONS * HTTP/1.1\r\nHost: portico.example\r\nContent-Length: 60\r\n\r\n", answer: "200"},
		{name: "CONNECT", text: "CONNECT ELSEWHERE HTTP/1.1\r\n" + ending, answer: "404, code 32614"},
		{name: "TRACE", text: "TRACE /page.cgi HTTP/1.1\r\n" + ending, answer: "404, code 32614"},
		{name: "encoded line ends in the path", text: get("/page.cgi%0d%0aX-Evil:%20y"), answer: "200", tracker: "GET /page.cgi%0D%0AX-Evil:%20y", look: wantHeader("X-Evil", "")},
		{name: "encoded line ends in the query", text: get("/page.cgi?a=%0d%0aX-Evil:%20y"), answer: "200", tracker: "GET /page.cgi?a=%0d%0aX-Evil:%20y", look: wantHeader("X-Evil", "")},
		{name: "encoded line ends in a product", text: get("/rest/flag_type/P%0d%0aX-Evil:%20y"), answer: "502, code 200502", tracker: "POST /jsonrpc.cgi", look: wantHeader("X-Evil", "")},
		{name: "a path that climbs", text: get("/../../etc/passwd"), answer: "400, code 32000"},
		{name: "a path that climbs, encoded twice", text: get("/rest/%252e%252e/%252e%252e/x"), answer: "404, code 32614"},
		{name: "a request line beyond 8190 bytes", text: get("/page.cgi?" + strings.Repeat("x", 9000)), answer: "414, code 200414"},
		{name: "an unknown method", text: "BREW /page.cgi HTTP/1.1\r\n" + ending, answer: "200", tracker: "BREW /page.cgi"},
		{name: "an unknown version of HTTP", text: "GET /page.cgi HTTP/9.9\r\n" + ending, answer: "505, code 200505"},
		{name: "no request at all", text: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", answer: "400, code 32000"},
	}
}

func wantHeader(name, value string) func(*testing.T, witnessed) {
	return func(t *testing.T, got witnessed) {
		t.Helper()
		if have := got.header.Get(name); !strings.HasPrefix(have, value) || value == "" && have != "" {
			t.Errorf("the tracker got %s: %q, want %q", name, have, value)
		}
	}
}
