package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCalls holds that no call of the older interfaces upsets the look into it, and that none which can be read counts
// without naming a method that changes flag types.
func FuzzCalls(f *testing.F) {
	for _, seed := range []string{`{"method":"FlagType.update"}`, `[{"method":1}]`, `{"method":{"method":"x"}}`, "<methodCall><methodName>x</methodName>", "<a>&#0;", "\xff\xfe<"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		callChangesFlagTypes(scriptXMLRPC, body, true)
		named := strings.Contains(string(body), "FlagType.") || strings.Contains(string(body), `\`)
		if callChangesFlagTypes(scriptJSONRPC, body, true) && !named && json.Valid(body) {
			t.Fatalf("%q changes nothing", body)
		}
	})
}
