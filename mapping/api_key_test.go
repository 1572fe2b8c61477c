package mapping_test

import (
	"strings"
	"testing"

	"portico/mapping"
)

func TestIsAPIKey(t *testing.T) {
	key := "AdminKey" + strings.Repeat("0", 32)
	cases := map[string]bool{
		key: true, strings.ToLower(key): true, strings.Repeat("z", 40): true,
		"": false, key[1:]: false, key + "0": false, key[1:] + "-": false, key[1:] + "@": false, key[1:] + "[": false,
		key[1:] + "`": false, key[1:] + "{": false, key[1:] + " ": false, key[2:] + "é": false,
	}
	for text, want := range cases {
		if got := mapping.IsAPIKey(text); got != want {
			t.Errorf("IsAPIKey(%q) = %v", text, got)
		}
	}
}
