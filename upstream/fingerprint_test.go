package upstream_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"portico/upstream"
)

func caller(credentials upstream.Credentials) upstream.Caller {
	return upstream.Caller{Credentials: credentials}
}

func TestFingerprints(t *testing.T) {
	prints := upstream.NewFingerprints(nil)
	first := prints.Of("a")
	if prints.Of("a", "bc") == prints.Of("ab", "c") || first == upstream.NewFingerprints(nil).Of("a") || first != prints.Of("a") {
		t.Error("fingerprints do not tell what they should")
	}
	same := [][2]upstream.Credentials{
		{{APIKey: "k"}, {APIKey: "k", Authorization: "Bearer k"}},
		{{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}, {Cookies: "theme=dark; Bugzilla_login=1; Bugzilla_logincookie=x"}},
	}
	for _, pair := range same {
		if prints.Credential(caller(pair[0])) != prints.Credential(caller(pair[1])) {
			t.Errorf("%q and %q differ", pair[0].Cookies, pair[1].Cookies)
		}
	}
	seen := map[upstream.Fingerprint]int{}
	for i, c := range []upstream.Credentials{
		{}, {APIKey: "k"}, {Token: "k"}, {Login: "k"}, {Password: "k"}, {Authorization: "Basic k"}, {Authorization: "Bearer k"},
		{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}, {Cookies: "Bugzilla_login=1; Bugzilla_logincookie=y"},
	} {
		print := prints.Credential(caller(c))
		if other, ok := seen[print]; ok {
			t.Errorf("credentials %d and %d are taken for the same", i, other)
		}
		seen[print] = i
		if text := fmt.Sprintf("%s %x", print[:], print); strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("k"))) {
			t.Error("a credential is kept in clear")
		}
	}
}
