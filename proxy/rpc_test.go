package proxy

import (
	"strings"
	"testing"
)

// FuzzCalls holds that no call of the older interfaces upsets the look into it, and that none counts which does not name
// a method that changes flag types.
func FuzzCalls(f *testing.F) {
	for _, seed := range []string{`{"method":"FlagType.update"}`, `[{"method":1}]`, `{"method":{"method":"x"}}`, "<methodCall><methodName>x</methodName>", "<a>&#0;", "\xff\xfe<"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/jsonrpc.cgi", "/xmlrpc.cgi"} {
			named := strings.Contains(string(body), "FlagType.") || strings.ContainsAny(string(body), `\&<`)
			if changesFlagTypes(path, body, true) && !named {
				t.Fatalf("%s: %q changes nothing", path, body)
			}
		}
	})
}
