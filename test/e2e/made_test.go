package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
)

// newType creates a flag type as an editor: more is what its JSON says beside name and description. It gives the id.
func (h *environment) newType(t testing.TB, name, more string) int {
	t.Helper()
	body := fmt.Sprintf(`{"name":%q,"description":"made by a test"`, name)
	if more != "" {
		body += "," + more
	}
	return integer(t, h.post(t, "editor", "/rest/flag_type", body+"}").ok(t, 201).at(t, "id"))
}

// types lists the flag types of a place such as TestProduct or TestProduct/Comp%20B.
func (h *environment) types(t testing.TB, user, place string) *reply {
	t.Helper()
	return h.get(t, user, "/rest/flag_type/"+place).ok(t, 200)
}

// lists demands that a flag type is listed for a place, or is not.
func (h *environment) lists(t testing.TB, place, flagType string, want bool) {
	t.Helper()
	if _, found := h.types(t, "", place).flagType(t, flagType); found != want {
		t.Errorf("%s lists the flag type %s: %v, want %v", place, flagType, found, want)
	}
}

// values gives the values that a user can set of a flag type of TestProduct.
func (h *environment) values(t testing.TB, user, flagType string) string {
	t.Helper()
	list, _ := h.types(t, user, "TestProduct").field(t, flagType, "values").([]any)
	values := ""
	for _, value := range list {
		values += text(t, value)
	}
	return values
}

// changed updates one flag type as an editor and gives its record of changes.
func (h *environment) changed(t testing.TB, idOrName any, body string) any {
	t.Helper()
	return h.put(t, "editor", fmt.Sprint("/rest/flag_type/", idOrName), body).ok(t, 200).at(t, "flagtypes", 0, "changes")
}

// upload gives the JSON of an attachment create: the required fields, and more.
func upload(more string) string {
	data := base64.StdEncoding.EncodeToString([]byte("some content\n"))
	body := `{"data":"` + data + `","file_name":"made.txt","summary":"made by a test"`
	if more != "" {
		body += "," + more
	}
	return body + "}"
}

// attach adds an attachment to a bug and gives its id.
func (h *environment) attach(t testing.TB, user, bug, more string) int {
	t.Helper()
	return integer(t, h.post(t, user, "/rest/bug/"+bug+"/attachment", upload(more)).ok(t, 201).at(t, "ids", 0))
}

// attachment reads one attachment by its id.
func (h *environment) attachment(t testing.TB, user string, id any) any {
	t.Helper()
	name := fmt.Sprint(id)
	return h.get(t, user, "/rest/bug/attachment/"+name).ok(t, 200).at(t, "attachments", name)
}

// edit updates one attachment as a developer and gives its record of changes.
func (h *environment) edit(t testing.TB, id any, body string) any {
	t.Helper()
	return h.put(t, "dev", fmt.Sprint("/rest/bug/attachment/", id), body).ok(t, 200).at(t, "attachments", 0, "changes")
}

// flags gives the flags of an attachment as texts such as "review?(plain@example.com)", in order.
func (h *environment) flags(t testing.TB, id any) []string {
	t.Helper()
	list, _ := walk(t, h.attachment(t, "dev", id), "flags").([]any)
	flags := []string{}
	for _, flag := range list {
		shown := text(t, walk(t, flag, "name")) + text(t, walk(t, flag, "status"))
		if requestee, ok := member(flag, "requestee"); ok {
			shown += "(" + text(t, requestee) + ")"
		}
		flags = append(flags, shown)
	}
	return flags
}

// holds demands exactly these flags on an attachment.
func (h *environment) holds(t testing.TB, id any, want ...string) {
	t.Helper()
	if got := h.flags(t, id); !slices.Equal(got, want) {
		t.Errorf("attachment %v holds the flags %q, want %q", id, got, want)
	}
}

// asked gives the number of requests of an operation that reached the tracker, by its name in test/tracker.
func (h *environment) asked(operation string) int { return h.tracker.Requests()[operation] }

// writes gives the operations that the tracker executed, oldest first.
func (h *environment) writes() []string {
	done := []string{}
	for _, entry := range h.tracker.Journal() {
		done = append(done, entry.Operation)
	}
	return done
}
