package tracker

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// maxRequestLine is the web server's limit in bytes (wire-facts 1, Web-server limits).
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
	if len(r.Method)+len(r.RequestURI)+len(r.Proto)+2 > maxRequestLine {
		return "", "", webServerPage(http.StatusRequestURITooLong)
	}
	path, status := decodePath(rawPath(r.RequestURI), s.slashMode())
	if status == 0 {
		path, status = collapse(path)
	}
	if status != 0 {
		return "", "", webServerPage(status)
	}
	if rest, ok := strings.CutPrefix(path, "/rest/"); ok {
		// The rewrite of /rest to /rest.cgi decodes once more, so a literal % is refused there.
		if path, status = decodePath("/"+rest, s.slashMode()); status != 0 {
			return "", "", webServerPage(status)
		}
		return scriptREST, path, nil
	}
	name, info, _ := strings.Cut(path[1:], "/")
	if info != "" || strings.HasSuffix(path, "/") {
		info = "/" + info
	}
	switch p := script(name); p {
	case "":
		return scriptIndex, "", nil
	case scriptREST, scriptJSONRPC, scriptXMLRPC, scriptAttachment, scriptShowBug, scriptIndex:
		return p, info, nil
	}
	return "", "", webServerPage(http.StatusNotFound)
}

// rawPath is the path as sent, without query and without scheme and host.
func rawPath(uri string) string {
	uri, _, _ = strings.Cut(uri, "?")
	if _, rest, ok := strings.Cut(uri, "://"); ok && !strings.HasPrefix(uri, "/") {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	if uri == "" || uri[0] != '/' {
		return "/" + uri
	}
	return uri
}

// decodePath undoes percent-encoding once. A bad escape is 400, a NUL or a refused slash 404.
func decodePath(raw string, slashes SlashMode) (path string, status int) {
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
		case c == 0, c == '/' && slashes == SlashRefused:
			status = http.StatusNotFound
		case c == '/' && slashes == SlashNoDecode:
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
	body := "<!DOCTYPE html>\n<html><head><title>" + title + "</title></head>\n<body><h1>" +
		html.EscapeString(http.StatusText(status)) + "</h1></body></html>\n"
	a := newReply(status)
	a.header.Set("Content-Type", "text/html; charset=iso-8859-1")
	a.body, a.sized = []byte(body), true
	return a
}
