package bugzilla

import (
	"regexp"
	"strings"
)

// cookieScope matches the attributes of a Set-Cookie line that say to which requests the cookie belongs.
var cookieScope = regexp.MustCompile(`(?i);\s*(?:path|domain)\s*=[^;]*`)

// RewriteCookie returns a Set-Cookie line with its path changed by path, and without a domain that keep does not keep. Other
// attributes stay as they are.
func RewriteCookie(line string, path func(string) string, keep func(domain string) bool) string {
	return cookieScope.ReplaceAllStringFunc(line, func(attribute string) string {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.TrimSpace(value)
		isPath := strings.EqualFold(strings.Trim(name, "; "), "path")
		switch {
		case isPath && path(value) != value:
			return name + "=" + path(value)
		case !isPath && !keep(value):
			return ""
		}
		return attribute
	})
}
