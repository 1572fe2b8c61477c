package migration

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// interfaces write a call of each of the older interfaces, with parameters whose values are texts, numbers, lists and content.
var interfaces = map[string]func(method string, params map[string]any) (path, kind, body string){
	"JSON-RPC": func(method string, params map[string]any) (path, kind, body string) {
		text, _ := json.Marshal(map[string]any{"method": method, "params": []any{params}, "id": 7})
		return "/jsonrpc.cgi", "application/json", string(text)
	},
	"JSON-RPC 1.1": func(method string, params map[string]any) (path, kind, body string) {
		text, _ := json.Marshal(map[string]any{"version": "1.1", "params": params, "id": "seven", "method": method})
		return "/jsonrpc.cgi", "application/json; charset=utf-8", string(text)
	},
	"XML-RPC": func(method string, params map[string]any) (path, kind, body string) {
		return "/xmlrpc.cgi", "text/xml", "<?xml version='1.0'?>\n<methodCall>\n<methodName>" + method + "</methodName>\n<params>\n<param>\n" +
			xmlValue(params) + "\n</param>\n</params>\n</methodCall>"
	},
}

// xmlValue writes a value as xmlrpc.client of Python does.
func xmlValue(value any) string {
	text := ""
	switch value := value.(type) {
	case map[string]any:
		text = "<struct>\n"
		for _, name := range slices.Sorted(maps.Keys(value)) {
			text += "<member>\n<name>" + name + "</name>\n" + xmlValue(value[name]) + "\n</member>\n"
		}
		text += "</struct>"
	case []any:
		text = "<array><data>\n"
		for _, one := range value {
			text += xmlValue(one) + "\n"
		}
		text += "</data></array>"
	case []string:
		text = "<array><data>\n<value>" + strings.Join(value, "</value>\n<value>") + "</value>\n</data></array>"
	case []byte:
		text = "<base64>\n" + base64.StdEncoding.EncodeToString(value) + "\n</base64>"
	case int:
		text = fmt.Sprintf("<int>%d</int>", value)
	case bool:
		text = map[bool]string{true: "<boolean>1</boolean>", false: "<boolean>0</boolean>"}[value]
	default:
		text = "<string>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(fmt.Sprint(value)) + "</string>"
	}
	return "<value>" + text + "</value>"
}

// rpc makes a call, with a key among the parameters.
func rpc(t *testing.T, base, over, method string, params map[string]any) (status int, header http.Header, body string) {
	t.Helper()
	all := map[string]any{"Bugzilla_api_key": admin()}
	maps.Copy(all, params)
	path, kind, text := interfaces[over](method, all)
	got := send(t, "POST", base+path, text, "Content-Type", kind)
	return got.status, got.header, string(got.text)
}

// element is an element of XML.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Within  []element `xml:",any"`
}

// types are the types of a value in a response, with the names of members.
func (e element) types() any {
	switch kind := e.XMLName.Local; {
	case kind == "struct":
		found := map[string]any{}
		for _, member := range e.Within {
			found[nameOf(member.Within[0].Text)] = member.Within[1].types()
		}
		return found
	case len(e.Within) > 0:
		var found []any
		for _, one := range e.Within {
			found = append(found, kind, one.types())
		}
		return found
	default:
		return kind
	}
}

// value is the value as JSON has it.
func (e element) value() any {
	switch kind := e.XMLName.Local; {
	case kind == "struct":
		members := map[string]any{}
		for _, member := range e.Within {
			members[member.Within[0].Text] = member.Within[1].value()
		}
		return members
	case kind == "array":
		list := []any{}
		for _, one := range e.Within[0].Within {
			list = append(list, one.value())
		}
		return list
	case kind == "int":
		return json.Number(e.Text)
	case len(e.Within) > 0:
		return e.Within[0].value()
	}
	return e.Text
}

// nameOf is the name of a member that is no id.
func nameOf(name string) string {
	if _, err := strconv.Atoi(name); err == nil {
		return "id"
	}
	return name
}

// jsonTypes are types for a value of JSON.
func jsonTypes(value any) any {
	switch value := value.(type) {
	case map[string]any:
		found := map[string]any{}
		for name, one := range value {
			found[nameOf(name)] = jsonTypes(one)
		}
		return found
	case []any:
		for i, one := range value {
			value[i] = jsonTypes(one)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return "time"
		}
		return "string"
	case nil:
		return nil
	default:
		return fmt.Sprintf("%T", value)
	}
	return value
}

// form is a response of an older interface without what differs from call to call, and the code of its error.
func form(t *testing.T, body string) string {
	t.Helper()
	var found any
	if strings.HasPrefix(body, "{") {
		must(t, json.Unmarshal([]byte(body), &found))
		found = jsonTypes(found)
	} else {
		var outermost element
		must(t, xml.Unmarshal([]byte(body), &outermost))
		found = outermost.types()
	}
	text, err := json.Marshal(found)
	must(t, err)
	return string(text) + regexp.MustCompile(`"code":\d+|faultCode</name><value><int>\d+`).FindString(body)
}

// written are the parameters of a new attachment.
func written(over string, bug int, summary, text string) map[string]any {
	content := any(base64.StdEncoding.EncodeToString([]byte(text)))
	if over == "XML-RPC" {
		content = []byte(text)
	}
	return map[string]any{
		"ids": []any{bug}, "data": content, "file_name": "f", "summary": summary, "content_type": "text/plain", "is_patch": false,
		"comment": "said by " + summary,
	}
}

// madeID is the id in the response to a create.
func madeID(t *testing.T, body string) int {
	t.Helper()
	found := regexp.MustCompile(`<int>(\d+)|"ids":\[(\d+)|"id":(\d+)}`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no id in %s", body)
	}
	id, _ := strconv.Atoi(found[1] + found[2] + found[3])
	return id
}

// copiedOnce waits until the journal has nothing left, and compares the attachments of both trackers. No write may have passed.
func (c *copied) copiedOnce(t *testing.T, summaries ...string) {
	t.Helper()
	process.Eventually(t, "everything is copied", func() bool {
		status := c.entries(t).Status
		return status.Unresolved == 0 && status.Pending == 0
	})
	want := map[string]int{}
	for _, summary := range summaries {
		want[summary] = 1
	}
	if lost := c.entries(t).Status.Losses; len(lost) > 0 {
		t.Errorf("these are not copied: %+v", lost)
	}
	for side := range c.bases {
		if got := c.summaries(t, side); !maps.Equal(got, want) {
			t.Errorf("tracker %d has the attachments %v, want %v", side, got, want)
		}
	}
}

// TestRPCWritesAreCopied writes through the older interfaces. Each write is in the journal and is copied once, each object has one id for ever, and
// going back is safe. Responses have the form that a tracker gives them.
func TestRPCWritesAreCopied(t *testing.T) {
	c := setCopied(t, "forward")
	server := tracker.New(tracker.Options{Seed: tracker.SeedDemo})
	direct := listen(t, server, server)
	// same makes a call of both, and compares the forms of their responses.
	same := func(over, method string, params, alone map[string]any) (got, want string) {
		t.Helper()
		_, wantHeader, want := rpc(t, direct, over, method, alone)
		status, header, got := rpc(t, c.Clients, over, method, params)
		if status != 200 || form(t, got) != form(t, want) || header.Get("Content-Type") != wantHeader.Get("Content-Type") {
			t.Errorf("%s %s: the response is %d %q\n%s\nwhere a tracker responds with %q\n%s", over, method, status, header.Get("Content-Type"), got, wantHeader.Get("Content-Type"), want)
		}
		return got, want
	}
	one := func(id int, more map[string]any) map[string]any {
		more = maps.Clone(more)
		more["ids"] = []any{id}
		return more
	}
	made, summaries := map[string]int{}, []string{}
	for over := range interfaces {
		summaries = append(summaries, over+" changed")
		got, want := same(over, "Bug.add_attachment", written(over, c.bug, over+" <ü>", "content"), written(over, 1, "s", "content"))
		alone := madeID(t, want)
		made[over] = madeID(t, got)
		change := map[string]any{"summary": over + " changed", "is_private": true}
		same(over, "Bug.update_attachment", one(made[over], change), one(alone, change))
		list, _ := same(over, "Bug.attachments", map[string]any{"attachment_ids": []any{made[over]}}, map[string]any{"attachment_ids": []any{alone}})
		if !strings.Contains(list, over+" changed") || !strings.Contains(list, base64.StdEncoding.EncodeToString([]byte("content"))) {
			t.Errorf("%s: the attachment is read as %s", over, list)
		}
		kind := map[string]any{"name": fmt.Sprint("made-", alone), "description": "d", "target_type": "attachment", "inclusions": []any{"WebShop"}}
		got, want = same(over, "FlagType.create", kind, kind)
		kind = map[string]any{"description": "other"}
		same(over, "FlagType.update", one(madeID(t, got), kind), one(madeID(t, want), kind))
		same(over, "FlagType.get", map[string]any{"product": "WebShop"}, map[string]any{"product": "WebShop"})
	}
	c.copiedOnce(t, summaries...)
	s := &scene{Facade: c.Facade}
	large := strings.Repeat("content", 100_000)
	s.change(t, "a move", switchover.Rule{Name: "shop", Products: []string{"WebShop"}, Reads: switchover.PhaseNew, Writes: switchover.PhaseNew, Replicate: true})
	for over, id := range made {
		_, _, got := rpc(t, c.Clients, over, "Bug.update_attachment", map[string]any{"ids": []any{id}, "summary": over + " moved"})
		if !strings.Contains(got, over+" changed") || !regexp.MustCompile(fmt.Sprintf(`"id":%[1]d\b|<int>%[1]d<`, id)).MatchString(got) {
			t.Errorf("%s: after the move the response is %s", over, got)
		}
		summaries[slices.Index(summaries, over+" changed")] = over + " moved"
		got, _ = same(over, "Bug.add_attachment", written(over, c.bug, over+" new", large), written(over, 1, "s", "content"))
		if id = madeID(t, got); id < offset {
			t.Errorf("%s: an attachment that is born at the new tracker has the id %d", over, id)
		}
		if _, _, got = rpc(t, c.Clients, over, "Bug.attachments", map[string]any{"ids": []any{c.bug}}); !strings.Contains(got, fmt.Sprint(id)) || !strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(large))) {
			t.Errorf("%s: the list has no attachment %d with its content: %.3000s", over, id, got)
		}
		summaries = append(summaries, over+" new")
	}
	c.copiedOnce(t, summaries...)
	process.Eventually(t, "going back is safe", func() bool { return s.status(t).Rules[0].GoingBack.State == journal.OutlookSafe })
}

// TestRPCInISO88591IsCopied: libraries of PHP declare this encoding, and both trackers get the characters that it means.
func TestRPCInISO88591IsCopied(t *testing.T) {
	c := setCopied(t, "forward")
	params := written("XML-RPC", c.bug, "gr\xfcn", "content")
	params["Bugzilla_api_key"] = admin()
	path, kind, call := interfaces["XML-RPC"]("Bug.add_attachment", params)
	send(t, "POST", c.Clients+path, strings.Replace(call, "'1.0'", "'1.0' encoding='iso-8859-1'", 1), "Content-Type", kind)
	c.copiedOnce(t, "grün")
}

// TestRPCFaults makes calls with mistakes. Each gets the error of a tracker in its form, and changes nothing.
func TestRPCFaults(t *testing.T) {
	c := setCopied(t, "forward")
	for over := range interfaces {
		without := func(name string, changes ...any) map[string]any {
			params := written(over, c.bug, "s", "content")
			delete(params, name)
			for i := 0; i < len(changes); i += 2 {
				params[changes[i].(string)] = changes[i+1]
			}
			return params
		}
		for what, call := range map[string]struct {
			method string
			params map[string]any
		}{
			"no summary":            {"Bug.add_attachment", without("summary")},
			"no bug":                {"Bug.add_attachment", without("ids")},
			"an unknown bug":        {"Bug.add_attachment", without("", "ids", []any{999999})},
			"a wrong type":          {"Bug.add_attachment", without("", "content_type", "wrong")},
			"an unknown flag":       {"Bug.add_attachment", without("", "flags", []any{map[string]any{"name": "none", "status": "?"}})},
			"a wrong key":           {"Bug.add_attachment", without("", "Bugzilla_api_key", "wrong")},
			"no key":                {"Bug.add_attachment", without("", "Bugzilla_api_key", "")},
			"a wrong login":         {"Bug.add_attachment", without("", "Bugzilla_api_key", "", "Bugzilla_login", "admin@demo.example", "Bugzilla_password", "wrong")},
			"an unknown attachment": {"Bug.update_attachment", map[string]any{"ids": []any{999999}, "summary": "t"}},
			"an unknown field":      {"Bug.update_attachment", map[string]any{"ids": []any{1}, "color": "red"}},
			"no flag type":          {"FlagType.update", map[string]any{"description": "d"}},
			"no name":               {"FlagType.create", map[string]any{"description": "d"}},
			"no product":            {"FlagType.get", map[string]any{"product": "none"}},
		} {
			_, _, want := rpc(t, c.bases[0], over, call.method, call.params)
			status, _, got := rpc(t, c.Clients, over, call.method, call.params)
			if status != 200 || form(t, got) != form(t, want) {
				t.Errorf("%s, %s: the response is %d\n%s\nand that of a tracker\n%s", over, what, status, got, want)
			}
		}
	}
	c.copiedOnce(t)
}

// TestPassedRPCWritesCount sends what has no form as an operation. It passes as it is, and makes going back unsafe.
func TestPassedRPCWritesCount(t *testing.T) {
	c := setCopied(t, "forward")
	_, _, call := interfaces["JSON-RPC"]("Bug.add_attachment", written("JSON-RPC", c.bug, "passed", "content"))
	call = strings.Replace(call, `"params":[{`, `"params":[{"Bugzilla_api_key":"`+admin()+`",`, 1)
	send(t, "POST", c.Clients+"/jsonrpc.cgi", call, "Content-Type", "text/plain")
	if got := c.summaries(t, 0); got["passed"] != 1 {
		t.Errorf("the tracker has the attachments %v", got)
	}
	process.Eventually(t, "the write is counted", func() bool {
		return slices.ContainsFunc(c.entries(t).Status.Losses, func(loss state.JournalLoss) bool {
			return loss.Receiver == "after" && loss.What == "jsonrpc.cgi Bug.add_attachment"
		})
	})
}

const attachByPython = `
import io, sys
import bugzilla
bz = bugzilla.Bugzilla(sys.argv[1], api_key=sys.argv[2])
content = bytes(range(256)) * 4000
attachment = bz.attachfile(int(sys.argv[3]), io.BytesIO(content), "by python-bugzilla", file_name="b.bin", content_type="application/octet-stream")
bz.updateattachmentflags(int(sys.argv[3]), attachment, "review", status="+")
print(bz.openattachment(attachment).read() == content)
`

// TestPythonBugzillaIsCopied attaches a file with the library python-bugzilla over XML-RPC.
func TestPythonBugzillaIsCopied(t *testing.T) {
	if _, err := exec.LookPath("bugzilla"); err != nil {
		t.Skip("Debian's package bugzilla-cli is not here")
	}
	c := setCopied(t, "forward")
	command := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", attachByPython, c.Clients+"/xmlrpc.cgi", admin(), fmt.Sprint(c.bug))
	command.Env = []string{"HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Fatalf("%v\n%s", err, out)
	}
	c.copiedOnce(t, "by python-bugzilla")
}
