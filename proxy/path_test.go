package proxy

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestNormalPath(t *testing.T) {
	for escaped, want := range map[string]string{
		"/rest/bug/5/attachment":        "/rest/bug/5/attachment",
		"//rest//bug/5///attachment":    "/rest/bug/5/attachment",
		"/rest/./bug/x/../5/attachment": "/rest/bug/5/attachment",
		"/rest/%2e/bug/x/%2E%2e/5/":     "/rest/bug/5/",
		"/rest/%62%75%67/5/attachment":  "/rest/bug/5/attachment",
		"/rest/flag_type/A%2fB":         "/rest/flag_type/A%2FB",
		"/rest/flag_type/A%252FB":       "/rest/flag_type/A%252FB",
		"/rest/flag_type/..%20":         "/rest/flag_type/..%20",
		"/rest/flag_type/A+B%20&%20C":   "/rest/flag_type/A+B%20&%20C",
		"/a/b/..":                       "/a/",
		"/a/.":                          "/a/",
		"/":                             "/",
		"":                              "/",
		"/..":                           "",
		"/a/../..":                      "",
		"/%":                            "",
		"/%4":                           "",
		"/%zz":                          "",
	} {
		got, err := normalPath(escaped)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("normalPath(%q) = %q, %v, want %q", escaped, got, err, want)
		}
	}
}

// Whatever comes in, the outcome is a clean path that means the same when it is normalized again.
func FuzzNormalPath(f *testing.F) {
	for _, seed := range []string{"/rest/bug/5/attachment", "//a/%2e%2e/%2F", "/%zz", "/a/..//b/", "/%41%", ".", "..", "/x/%2E"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		normal, err := normalPath(escaped)
		if err != nil {
			return
		}
		again, err := normalPath(normal)
		if err != nil || again != normal {
			t.Fatalf("normalPath(%q) = %q, and again %q, %v", escaped, normal, again, err)
		}
		trimmed := strings.TrimSuffix(normal, "/")
		if trimmed != "" && path.Clean(trimmed) != trimmed {
			t.Fatalf("normalPath(%q) = %q is not clean", escaped, normal)
		}
		before, err1 := url.PathUnescape(escaped)
		after, err2 := url.PathUnescape(normal)
		if err1 != nil || err2 != nil {
			t.Fatalf("normalPath(%q) = %q with invalid escapes", escaped, normal)
		}
		if !strings.Contains(before, "/") && !strings.Contains(before, ".") && before != "" && after != "/"+before {
			t.Fatalf("normalPath(%q) = %q means something else", escaped, normal)
		}
		misread(normal, true)
	})
}
