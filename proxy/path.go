package proxy

import (
	"slices"
	"strings"

	"portico/mapping"
)

// badPath is the error for a path that could not be understood.
func badPath() *mapping.Error { return mapping.Refuse(mapping.CodeJSON, "The path is malformed.") }

// normalPath rewrites an escaped path as the web server of a real tracker does before it looks for a resource
// (wire-facts.md, section 1, Paths): unreserved characters lose their escapes, double slashes become one, and dot
// segments are resolved, encoded ones too. All other escapes stay, so a slash in a name stays apart from one between names.
// What does not begin with a slash, such as the * of OPTIONS, is no path.
func normalPath(escaped string) (string, error) {
	if escaped != "" && escaped[0] != '/' {
		return "", badPath()
	}
	if isNormal(escaped) {
		return escaped, nil
	}
	plain, err := unescapeUnreserved(escaped)
	if err != nil {
		return "", err
	}
	return resolveDots(plain)
}

// isNormal tells the paths in which there is nothing to do.
func isNormal(escaped string) bool {
	return strings.HasPrefix(escaped, "/") && !strings.Contains(escaped, "%") && !strings.Contains(escaped, "//") && !strings.Contains(escaped, "/.")
}

func unescapeUnreserved(escaped string) (string, error) {
	var plain strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '%' {
			plain.WriteByte(escaped[i])
			continue
		}
		value, ok := escapedByte(escaped[i:])
		if !ok {
			return "", badPath()
		}
		if isUnreserved(value) {
			plain.WriteByte(value)
		} else {
			plain.WriteString(strings.ToUpper(escaped[i : i+3]))
		}
		i += 2
	}
	return plain.String(), nil
}

// resolveDots collapses slashes and resolves . and .. segments. A path that climbs above the root is malformed.
func resolveDots(path string) (string, error) {
	var kept []string
	segments := strings.Split(path, "/")
	for _, segment := range segments {
		switch segment {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", badPath()
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, segment)
		}
	}
	clean := "/" + strings.Join(kept, "/")
	last := segments[len(segments)-1]
	if len(kept) > 0 && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return clean, nil
}

// escapedByte reads the escape %XY at the start of text.
func escapedByte(text string) (value byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	high, highOK := hexDigit(text[1])
	low, lowOK := hexDigit(text[2])
	return high<<4 | low, highOK && lowOK
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

// isUnreserved tells the characters that mean the same with and without an escape (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// editsBugs tells the path on which a write would edit bugs instead of attachments: the collection of attachments,
// which a real tracker takes for the bug named "attachment" (wire-facts.md, section 1, Paths).
func editsBugs(path string) bool { return anyReading(path, isAttachmentCollection) }

// climbs tells a path that leads out of where it begins once its encoded slashes are taken for slashes.
func climbs(path string) bool {
	return anyReading(path, func(reading string) bool {
		return slices.Contains(strings.FieldsFunc(reading, func(r rune) bool { return r == '/' || r == '\\' }), "..")
	})
}

// anyReading asks about a path as it is written and about everything that it becomes when its escapes are taken off once
// and more often, because a server may do that on the way. What has no end in sight counts as found.
func anyReading(path string, found func(string) bool) bool {
	const rounds = 6
	for range rounds {
		if found(path) {
			return true
		}
		decoded := unescapeAll(path)
		if decoded == path {
			return false
		}
		path = decoded
	}
	return true
}

// isAttachmentCollection looks at a path also up to where a server that takes escapes off before it looks for a query would end
// it, or one written in C.
func isAttachmentCollection(path string) bool {
	if end := strings.IndexAny(path, "?#\x00"); end >= 0 && isAttachmentCollection(path[:end]) {
		return true
	}
	clean, err := resolveDots(strings.ReplaceAll(path, `\`, "/"))
	if err != nil {
		return false
	}
	clean = strings.TrimSuffix(clean, "/")
	return strings.EqualFold(clean, "/rest/bug/attachment") || strings.EqualFold(clean, "/rest.cgi/bug/attachment")
}

// unescapeAll takes every well-formed escape off, slashes included.
func unescapeAll(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var plain strings.Builder
	plain.Grow(len(path))
	for i := 0; i < len(path); i++ {
		value, ok := escapedByte(path[i:])
		if !ok {
			plain.WriteByte(path[i])
			continue
		}
		plain.WriteByte(value)
		i += 2
	}
	return plain.String()
}
