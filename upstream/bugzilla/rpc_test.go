package bugzilla

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"portico/mapping"
)

// FuzzReadCall: no body upsets the reading of a call, and of those that are JSON only one whose method is a flag type write counts
// as one.
func FuzzReadCall(f *testing.F) {
	for _, seed := range []string{
		`{"method":"FlagType.update"}`, `[{"method":1}]`, `{"method":{"method":"x"}}`, `{"a\"":"\\","method":"FlagType\u002ecreate"}`,
		"<methodCall><methodName>FlagType.update</methodName>", "<a>&#0;", "<![CDATA[", "<!--", "\xff\xfe<",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := ReadCall(scriptXMLRPC, bytes.NewReader(body)); err != nil {
			t.Fatal(err)
		}
		call, err := ReadCall(scriptJSONRPC, bytes.NewReader(body))
		must(t, err)
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil {
			return
		}
		var method string
		_ = json.Unmarshal(members["method"], &method)
		if writes := method == "FlagType.update" || method == "FlagType.create"; call.WritesFlagTypes != writes && bytes.Count(body, []byte("method")) < 2 && !bytes.ContainsRune(body, '\\') {
			t.Fatalf("%q: the method is %q", body, method)
		}
	})
}

// TestReadCallOfAnyLength: words that are longer than the buffer, and escapes at its end, do not hide what comes after them. In a list of
// calls a read hides no write.
func TestReadCallOfAnyLength(t *testing.T) {
	for _, list := range []string{`[{"method":"Bug.update"},{"method":"Bug.get"}]`, `[{"method":"Bug.get"},{"method":"Bug.update"}]`} {
		if call, err := ReadCall(scriptJSONRPC, strings.NewReader(list)); err != nil || call.Method != "Bug.update" {
			t.Errorf("%s: %+v, %v", list, call, err)
		}
	}
	for _, long := range []string{strings.Repeat("x", 3*walkBuffer), strings.Repeat(`\\`, 3*walkBuffer), strings.Repeat(`\"`, 3*walkBuffer)} {
		for shift := range 4 {
			body := strings.Repeat(" ", shift) + `{"` + long + `":"` + long + `","Bugzilla_api_key":1,"method":"FlagType.update"}`
			if call, err := ReadCall(scriptJSONRPC, strings.NewReader(body)); err != nil || !call.WritesFlagTypes || !call.ShowsCredential {
				t.Errorf("%.9q, shifted by %d: %+v, %v", long, shift, call, err)
			}
			body = strings.Repeat(" ", shift) + "<methodCall><!--" + long + "--><methodName>FlagType.&#117;pdate</methodName>" +
				"<params>" + long + "<name>" + long + "</name><name> Bugzilla_api_key </name></params></methodCall>"
			if call, err := ReadCall(scriptXMLRPC, strings.NewReader(body)); err != nil || !call.WritesFlagTypes || !call.ShowsCredential {
				t.Errorf("%.9q, shifted by %d: %+v, %v", long, shift, call, err)
			}
		}
	}
}

// TestEveryOperationHasMembers: an operation without expected members would count as carried out whatever the tracker says.
func TestEveryOperationHasMembers(t *testing.T) {
	for _, operation := range mapping.Operations() {
		if operation != mapping.OpFlagTypes && hasExpectedMembers(operation, nil) {
			t.Errorf("%s succeeds with an empty object", operation)
		}
	}
}
