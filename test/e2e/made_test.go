package e2e

import (
	"encoding/base64"
	"fmt"
)

func flagTypeBody(name, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"name":%q,"description":"made by a test"%s}`, name, more)
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

// operation is one of the seven as a request that succeeds for an administrator.
type operation struct {
	name, method, path, body string
	status                   int
	// anonymous is the status that it has without credentials.
	anonymous int
}

// seven are the operations of interface.md, in its order. Each needs a login, or shows more to one: SecretProduct, bug 4 and
// attachment 2 are not for everybody.
func seven() []operation {
	return []operation{
		{"get flag types", "GET", "/flag_type/SecretProduct", "", 200, 401},
		{"create flag type", "POST", "/flag_type", `{"name":"made","description":"d"}`, 201, 401},
		{"update flag type", "PUT", "/flag_type/1", `{"sortkey":12}`, 200, 401},
		{"get attachments of a bug", "GET", "/bug/4/attachment", "", 200, 401},
		{"get one attachment", "GET", "/bug/attachment/2", "", 200, 401},
		{"create attachment", "POST", "/bug/7/attachment", upload(`"ids":[7],"content_type":"text/plain"`), 201, 401},
		{"update attachment", "PUT", "/bug/attachment/1", `{"ids":[1],"summary":"changed"}`, 200, 401},
	}
}

// codeOf gives the code that an operation of seven has for who is not logged in.
func codeOf(op operation) int {
	return map[string]int{"get flag types": 106, "get attachments of a bug": 102, "get one attachment": 304}[op.name] | map[bool]int{true: 410}[op.method != "GET"]
}
