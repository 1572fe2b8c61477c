package bugzilla

import (
	"slices"
	"testing"

	"portico/upstream"
)

// TestGroups: each dialect names the groups of an account in its own way. What has no groups tells nothing of the caller.
func TestGroups(t *testing.T) {
	caller := upstream.Caller{Credentials: upstream.Credentials{Login: "dev@example.com", Password: "p"}}
	for _, c := range []struct {
		dialect, answer string
		want            []string
	}{
		{"bugzilla-5", `{"users":[{"id":4,"name":"dev@example.com","groups":[{"id":3,"name":"admin"},{"id":9,"name":"editbugs"}]}]}`, []string{"admin", "editbugs"}},
		{"bugzilla-5", `{"users":[{"name":"dev@example.com","groups":[]}]}`, []string{}},
		{"bmo", `{"id":4,"name":"dev@example.com","groups":["admin","editbugs"]}`, []string{"admin", "editbugs"}},
		{"bmo", `{"id":4,"name":"dev@example.com","groups":[]}`, []string{}},
		{"bugzilla-5", `{"users":[{"name":"dev@example.com"}]}`, nil},
		{"bugzilla-5", `{"users":[]}`, nil},
		{"bugzilla-5", `{"users":[{"name":"dev@example.com","groups":[]},{"name":"other@example.com","groups":[]}]}`, nil},
		{"bmo", `{"id":4,"groups":["admin"]}`, nil},
		{"bmo", `{"name":"dev@example.com","groups":"admin"}`, nil},
	} {
		client := dial(t, c.dialect, answering(200, "application/json", c.answer))
		got, err := client.Groups(t.Context(), caller)
		if (err == nil) != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s with %s: got %q (%v), want %q", c.dialect, c.answer, got, err, c.want)
		}
	}
}
