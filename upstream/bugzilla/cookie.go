package bugzilla

import "strings"

// RewriteCookie returns a Set-Cookie line with its path changed by path, and without a domain that keep does not keep. Other
// attributes stay as they are.
func RewriteCookie(line string, path func(string) string, keep func(domain string) bool) string {
	parts := strings.Split(line, ";")
	kept := parts[:1]
	for _, attribute := range parts[1:] {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "path":
			if changed := path(value); changed != value {
				attribute = name + "=" + changed
			}
		case "domain":
			if !keep(value) {
				continue
			}
		}
		kept = append(kept, attribute)
	}
	return strings.Join(kept, ";")
}
