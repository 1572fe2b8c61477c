package bugzilla

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"portico/mapping"
)

var errUnsafeSegment = errors.New("a path segment that the tracker would not take as one name")

// The two paths that a tracker's REST interface can have. The first is a rewrite
// of the second, which some web servers lack (wire-facts.md section 1).
const (
	restRoot = "/rest"
	cgiRoot  = "/rest.cgi"
)

// resource builds an escaped path below the tracker's REST interface. Every path that is sent to a
// tracker is built here. It refuses segments that would change which resource
// is meant: empty ones, the dot segments, which url.PathEscape leaves alone, and
// those that the dialect cannot carry.
func resource(dialect mapping.Dialect, segments ...string) (string, error) {
	var path strings.Builder
	path.WriteString(cmp.Or(dialect.Root, restRoot))
	for _, segment := range segments {
		if !fitsPath(dialect, segment) {
			return "", errUnsafeSegment
		}
		path.WriteByte('/')
		path.WriteString(url.PathEscape(segment))
	}
	return path.String(), nil
}

// fitsPath tells whether a name can be one segment of a path. A stock tracker
// behind Apache refuses an encoded slash and an encoded percent sign, and with
// one database driver misreads non-ASCII names (wire-facts.md section 1, Encoded
// characters). The rewrite from /rest to /rest.cgi reads a path once more after its
// escapes were taken off, so that a name would end at a ? or #.
func fitsPath(dialect mapping.Dialect, segment string) bool {
	trimmed := strings.TrimSpace(segment)
	if trimmed == "" || trimmed == "." || trimmed == ".." {
		return false
	}
	for _, r := range segment {
		if r < ' ' || r == 0x7f {
			return false
		}
		if !dialect.EncodedSlash && (strings.ContainsRune(`/%\?#`, r) || r > 0x7e) {
			return false
		}
	}
	return true
}

// fitsQuery tells whether a stock tracker reads a name right from the query:
// any ASCII (wire-facts.md section 1).
func fitsQuery(dialect mapping.Dialect, text string) bool {
	if dialect.EncodedSlash {
		return true
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > 0x7e })
}
