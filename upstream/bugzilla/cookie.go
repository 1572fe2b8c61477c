package bugzilla

import (
	"regexp"
	"strings"
)

// cookieScope matches the attributes of a Set-Cookie line that say to which requests the cookie belongs.
var cookieScope = regexp.MustCompile(`(?i);\s*(?:path|domain)\s*=[^;]*`)

// RewriteCookie returns a Set-Cookie line with its path changed by path, and without a domain. Other attributes stay as they are.
func RewriteCookie(line string, path func(string) string) string {
	return cookieScope.ReplaceAllStringFunc(line, func(attribute string) string {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.TrimSpace(value)
		switch {
		case !strings.EqualFold(strings.Trim(name, "; "), "path"):
			return ""
		case path(value) != value:
			return name + "=" + path(value)
		}
		return attribute
	})
}
