package proxy

import (
	"slices"
	"strings"
	"testing"
)

// However the path of an operation is spelled, it is routed as one or does not pass.
func FuzzMisread(f *testing.F) {
	f.Add(uint8(0), uint16(9), uint8(0), uint8(1))
	f.Add(uint8(2), uint16(20), uint8(5), uint8(0))
	operations := []string{"/rest/flag_type", "/rest/flag_type/5", "/rest/flag_type/P/C", "/rest.cgi/bug/7/attachment", "/rest/bug/attachment/1"}
	odd := []string{"%20", "%0a", "%09", "%c2%a0", "%00", ";a", ";", ".", "%ff", "%e2%80%8b"}
	slashes := []string{"/", "%2F", "%5C", "%c0%af", "%252f", "%e0%80%af"}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, what, slash uint8) {
		path := operations[int(which)%len(operations)]
		segments := strings.Split(path[1:], "/")
		i := int(at) % len(segments)
		segments[i] += odd[int(what)%len(odd)]
		spelled := "/" + strings.Join(segments[:i+1], "/")
		if rest := segments[i+1:]; len(rest) > 0 {
			spelled += slashes[int(slash)%len(slashes)] + strings.Join(rest, "/")
		}
		normal, err := normalPath(spelled)
		if err == nil && !isRouted(normal) && !misread(normal, true) {
			t.Fatalf("%s passes", normal)
		}
	})
}

// isRouted reports whether a normal path has the segments of an operation as they are written in interface.md.
func isRouted(path string) bool {
	s := strings.Split(strings.TrimSuffix(path, "/"), "/")[1:]
	if len(s) < 2 || len(s) > 4 || s[0] != "rest" && s[0] != "rest.cgi" {
		return false
	}
	return s[1] == "flag_type" || s[1] == "bug" && len(s) == 4 && slices.Contains(s[2:], "attachment")
}
