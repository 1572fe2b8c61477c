package tracker

import (
	"fmt"
	"net/http"
	"strings"
)

// maxRequestLine is the web server's limit in bytes (tracker-behaviour.md section 1, Web-server limits).
const maxRequestLine = 8190

// script is one program behind the web server.
type script string

const (
	scriptREST       script = "rest.cgi"
	scriptJSONRPC    script = "jsonrpc.cgi"
	scriptXMLRPC     script = "xmlrpc.cgi"
	scriptAttachment script = "attachment.cgi"
	scriptShowBug    script = "show_bug.cgi"
	scriptIndex      script = "index.cgi"
)

// locate does the web server's part of a request: limits, decoding, collapsing, and the choice of the program with the
// path that is left for it. When the web server answers itself, page is that answer.
func (s *Server) locate(r *http.Request) (program script, path string, page *reply) {
	if s.mojolicious() {
		return s.mojoLocate(r)
	}
	if len(r.Method)+len(r.RequestURI)+len(r.Proto)+2 > maxRequestLine {
		return "", "", webServerPage(http.StatusRequestURITooLong)
	}
	path, status := decodePath(r.URL.EscapedPath(), s.slashes())
	if status == 0 {
		path, status = collapse(path)
	}
	if status != 0 {
		return "", "", webServerPage(status)
	}
	if rest, ok := strings.CutPrefix(path, "/rest/"); ok {
		// The rewrite of /rest to /rest.cgi decodes once more, so a literal % is refused there.
		if path, status = decodePath("/"+rest, s.slashes()); status != 0 {
			return "", "", webServerPage(status)
		}
		return scriptREST, path, nil
	}
	if program, path = programOf(path); program == "" {
		page = webServerPage(http.StatusNotFound)
	}
	return program, path, page
}

// programOf splits a path into the program and what is left for it; the program is empty for an unknown path.
func programOf(path string) (program script, rest string) {
	name, info, _ := strings.Cut(path[1:], "/")
	if info != "" || strings.HasSuffix(path, "/") {
		info = "/" + info
	}
	switch p := script(name); p {
	case "":
		return scriptIndex, ""
	case scriptREST, scriptJSONRPC, scriptXMLRPC, scriptAttachment, scriptShowBug, scriptIndex:
		return p, info
	}
	return "", ""
}

// mojoLocate is locate for BMO and Harmony: escapes are decoded once and before routing, "%2F" too, and nothing is collapsed.
func (s *Server) mojoLocate(r *http.Request) (program script, path string, page *reply) {
	path, _ = decodePath(r.URL.EscapedPath(), QuirkSlashOn)
	if path == "" || strings.HasPrefix(path, "//") {
		return "", "", s.mojoPage(http.StatusNotFound)
	}
	if rest, ok := strings.CutPrefix(path, "/rest"); ok && (rest == "" || rest[0] == '/') {
		return scriptREST, rest, nil
	}
	program, path = programOf(path)
	if program == "" || s.bmo() && (program == scriptJSONRPC || program == scriptXMLRPC) {
		return "", "", s.mojoPage(http.StatusNotFound)
	}
	return program, path, nil
}

// mojoPage is a page of BMO's or Harmony's web server.
func (s *Server) mojoPage(status int) *reply {
	a := webServerPage(status)
	s.securityHeaders(a.header)
	if status == http.StatusNotFound {
		a.header.Del("Cache-Control")
	}
	a.header.Set("Content-Type", "text/html;charset=UTF-8")
	a.header.Set("Vary", "Accept-Encoding")
	return a
}

// decodePath undoes percent-encoding once. A bad escape is 400, a NUL or a refused slash 404.
func decodePath(raw string, slashes Quirk) (path string, status int) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '%' {
			b.WriteByte(raw[i])
			continue
		}
		if i+2 >= len(raw) || unhex(raw[i+1]) < 0 || unhex(raw[i+2]) < 0 {
			return "", http.StatusBadRequest
		}
		switch c := byte(unhex(raw[i+1])<<4 | unhex(raw[i+2])); {
		case c == 0 && slashes == QuirkSlashOn: // dropped
		case c == 0, c == '/' && slashes == "":
			status = http.StatusNotFound
		case c == '/' && slashes == QuirkSlashNoDecode:
			b.WriteString(raw[i : i+3])
		default:
			b.WriteByte(c)
		}
		i += 2
	}
	return b.String(), status
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// collapse merges slashes and resolves dot segments; a path that climbs above the root is 400.
func collapse(path string) (string, int) {
	parts := strings.Split(path, "/")
	out := []string{}
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "..":
			if len(out) == 0 {
				return "", http.StatusBadRequest
			}
			out = out[:len(out)-1]
		case part != "" && part != ".":
			out = append(out, part)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/"), 0
}

// webServerPage is an answer of the web server itself: HTML with a length, without the tracker's headers.
func webServerPage(status int) *reply {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	a := newReply(status)
	a.header.Set("Content-Type", "text/html; charset=iso-8859-1")
	a.body, a.sized = []byte(page(title, "<h1>"+title+"</h1>")), true
	return a
}
