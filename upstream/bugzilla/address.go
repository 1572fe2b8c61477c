package bugzilla

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// restRoot is the usual path of a tracker's REST interface.
const restRoot = "/rest"

// resource builds an escaped path below the tracker's REST interface. Every path that is sent to a
// tracker is built here. It refuses segments that would change which resource
// is meant: empty ones, the dot segments, which url.PathEscape leaves alone, and
// those that the dialect cannot carry.
func resource(dialect mapping.Dialect, segments ...string) (string, error) {
	path := []string{cmp.Or(dialect.Root, restRoot)}
	for _, segment := range segments {
		if !fitsPath(dialect, segment) {
			return "", errors.New("a path segment that the tracker would not take as one name")
		}
		path = append(path, url.PathEscape(segment))
	}
	return strings.Join(path, "/"), nil
}

// fitsPath reports whether a name can be one segment of a path. A stock tracker
// behind Apache refuses an encoded slash and an encoded percent sign, and with
// one database driver misreads non-ASCII names (tracker-behaviour.md section 1, Encoded
// characters). The rewrite from /rest to /rest.cgi decodes a path a second time,
// so that a name would end at a ? or #. BMO and Harmony decode an encoded slash
// before they route, so that the path would name another resource (section 14).
func fitsPath(dialect mapping.Dialect, segment string) bool {
	trimmed := strings.TrimSpace(segment)
	if trimmed == "" || trimmed == "." || trimmed == ".." {
		return false
	}
	return !strings.ContainsFunc(segment, func(r rune) bool {
		return r < ' ' || r == 0x7f || dialect.ASCIIOnly && r > 0x7e || strings.ContainsRune(dialect.NotInPath, r)
	})
}

// fitsQuery reports whether the tracker reads a name correctly from the query; a
// stock one reads ASCII only (tracker-behaviour.md section 1).
func fitsQuery(dialect mapping.Dialect, text string) bool {
	return !dialect.ASCIIOnly || !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > 0x7e })
}

// maxLine is the longest request line that a web server before a tracker takes, in bytes (tracker-behaviour.md section 1, Paths and methods).
const maxLine = 8190

// outgoing is a call with the caller's credentials where the dialect looks for them.
type outgoing struct {
	header http.Header
	// target is the path below the tracker's base with the query.
	target string
	// body are the credentials that go in the body.
	body mapping.Members
}

// prepare gives a call the form in which it goes out. A read whose request line gets too long, perhaps by the
// credentials only, becomes the same question by JSON-RPC, which has everything in the body; so does one whose credentials are to
// be hidden from the log of the web server.
func (c *Client) prepare(dialect mapping.Dialect, caller upstream.Caller, call *Call) outgoing {
	out := address(dialect, caller, call)
	hide := c.options.HideKeys && !dialect.HeaderCredentials && call.Body == nil && hasParameters(caller.Credentials)
	isLong := len(call.Method+" "+c.options.URL.EscapedPath()+out.target+" HTTP/1.1") > maxLine
	if call.long != nil && (hide || isLong) {
		*call = call.long()
		out = address(dialect, caller, call)
	}
	return out
}

// address adds the credentials to a call.
func address(dialect mapping.Dialect, caller upstream.Caller, call *Call) outgoing {
	out, query := outgoing{header: requestHeader(caller, call), target: call.Path}, url.Values{}
	if call.RPC != "" {
		out.target = dialect.Below() + call.Path
	}
	maps.Copy(query, call.Query)
	out.body = authorize(dialect, call, caller, query, out.header)
	if encoded := query.Encode(); encoded != "" {
		out.target += "?" + strings.ReplaceAll(encoded, "%2C", ",") // a comma means itself there, and lists are full of them
	}
	return out
}
