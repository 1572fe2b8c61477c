package migration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// client is a caller that stays with one process. It writes, and looks at once for what it has written; it also looks at what others have written.
type client struct {
	world  *world
	name   string
	base   string
	key    string
	http   *http.Client
	random *rand.Rand
	count  int
	own    []*thing
}

// result is a response. sure says that the request was acknowledged, away that it was not, which a client has to expect while something is killed.
type result struct {
	response
	sure, away bool
}

// ask makes a request.
func (c *client) ask(method, path string, body any) result {
	kind := "application/json"
	if _, isText := body.(string); isText {
		kind = "text/xml"
	}
	c.count++
	got, err := request(context.Background(), c.http, method, c.base+path, body,
		"X-Request-Id", fmt.Sprintf("client-%s-%d", c.name, c.count), "Content-Type", kind, keyHeader, c.key)
	if got.status == 0 {
		return result{away: true}
	}
	c.world.book.count(fmt.Sprint(method, " ", got.status, " ", got.header.Get("Portico-Error")))
	return result{got, err == nil && got.status < 300, err != nil || got.status >= 500}
}

// call makes a call of one of the older interfaces.
func (c *client) call(over, method string, params map[string]any) result {
	script, _, text := interfaces[over](method, params)
	if over == "XML-RPC" {
		return c.ask("POST", script, text)
	}
	return c.ask("POST", script, json.RawMessage(text))
}

// inAnyForm makes a write by REST, JSON-RPC or XML-RPC. The result is that of REST.
func (c *client) inAnyForm(method, path string, body any) result {
	over := []string{"", "JSON-RPC", "XML-RPC"}[c.random.IntN(3)]
	fields, ok := body.(map[string]any)
	if over == "" || !ok {
		return c.ask(method, path, body)
	}
	params, segments := maps.Clone(fields), strings.Split(path, "/")[2:]
	call := "FlagType.create"
	switch {
	case segments[len(segments)-1] == "attachment":
		call, params["ids"] = "Bug.add_attachment", []any{segments[1]}
		if content, _ := params["data"].(string); over == "XML-RPC" {
			params["data"], _ = base64.StdEncoding.DecodeString(content)
		}
	case segments[0] == "bug":
		call, params["ids"] = "Bug.update_attachment", []any{segments[2]}
	case len(segments) > 1:
		call, params["ids"] = "FlagType.update", []any{segments[1]}
	}
	var reply struct {
		Error  *struct{ Message string }
		Result json.RawMessage
	}
	r := c.call(over, call, params)
	if over == "XML-RPC" {
		var outermost element
		_ = xml.Unmarshal(r.text, &outermost)
		if r.sure && len(outermost.Within) == 1 && outermost.Within[0].XMLName.Local == "params" {
			reply.Result, _ = json.Marshal(outermost.Within[0].Within[0].Within[0].value())
		}
	} else {
		r.into(&reply)
	}
	if r.sure && (reply.Error != nil || len(reply.Result) == 0) {
		return result{response: response{status: http.StatusBadRequest, text: r.text}}
	}
	r.text = reply.Result
	return r
}

// unexpected notes a refusal. A client must only meet errors that say that something is away.
func (c *client) unexpected(what string, r result) {
	if !r.sure && !r.away {
		c.world.book.wrong("%s: %s gets %d %.300s", c.name, what, r.status, r.text)
	}
}

// run works until over is closed.
func (c *client) run(over <-chan struct{}, round func()) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(c.random.IntN(100)) * time.Millisecond):
		}
		c.world.book.paused.RLock()
		round()
		c.world.book.paused.RUnlock()
	}
}

// attach is one round of a client that writes attachments.
func (c *client) attach() {
	book, n := &c.world.book, c.random.IntN(20)
	switch {
	case n < 4 || len(c.own) == 0:
		c.create()
	case n < 10:
		c.update(c.own[c.random.IntN(len(c.own))])
	case n < 12:
		shared := book.shared[c.random.IntN(len(book.shared))]
		said := fmt.Sprintf("said of all by %s %d", c.name, c.count)
		book.change(nil, func() { book.sharedSaid[said] = false })
		r := c.write(asked{comment: said}, "PUT", fmt.Sprintf("/rest/bug/attachment/%d", shared), map[string]any{"summary": "changed as " + said, "comment": said})
		c.unexpected("an update", r)
		book.change(nil, func() { book.sharedSaid[said] = r.sure })
	case n < 16:
		c.see(c.own[c.random.IntN(len(c.own))], "")
	default:
		c.list(c.world.bugs[c.random.IntN(len(c.world.bugs))])
	}
}

func (c *client) create() {
	book := &c.world.book
	made := &thing{
		name: fmt.Sprintf("%s-%d.txt", c.name, c.count), bug: c.world.bugs[c.random.IntN(len(c.world.bugs))],
		said: map[string]bool{}, flags: map[string]bool{"review": false},
	}
	said := "made " + made.name
	book.change(made, func() { made.said[said] = false })
	r := c.write(asked{thing: made}, "POST", fmt.Sprintf("/rest/bug/%d/attachment", made.bug), map[string]any{
		"data": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(made.name), 1+c.random.IntN(2)*200)), "file_name": made.name,
		"summary": versioned(made.name, 0), "comment": said, "content_type": "text/plain", "flags": []any{map[string]any{"name": "review", "status": "?"}},
	})
	c.unexpected("a create", r)
	if !r.sure {
		return
	}
	var reply struct{ IDs []int }
	if r.into(&reply); len(reply.IDs) != 1 {
		book.wrong("%s: a create gives %s", c.name, r.text)
		return
	}
	book.shows(c.name, "attachment", made.name, reply.IDs[0])
	book.change(made, func() { made.made, made.said[said], made.flags["review"] = true, true, true })
	c.own = append(c.own, made)
	c.see(made, "after its creation")
}

// versioned is the text of an object that has a version.
func versioned(name string, version int) string { return fmt.Sprintf("%s version %d", name, version) }

// versionOf reads the version of a text, -1 for none.
func versionOf(text string) int {
	version := -1
	if at := strings.LastIndex(text, "version "); at >= 0 {
		_, _ = fmt.Sscan(text[at+len("version "):], &version)
	}
	return version
}

// kinds are the types of flags that updates set, one flag of each.
var kinds = []string{"superreview", "ui-review"}

func (c *client) update(t *thing) {
	book, comment, kind, version := &c.world.book, "", "", 0
	book.change(t, func() { t.tried++; version = t.tried })
	body := map[string]any{"summary": versioned(t.name, version)}
	switch n := c.random.IntN(4); {
	case n == 0:
		comment = fmt.Sprintf("said of %s %d", t.name, version)
		body["comment"] = comment
	case n == 1:
		kind = kinds[c.random.IntN(len(kinds))]
		if _, set := t.flags[kind]; set {
			kind = ""
		} else {
			body["flags"] = []any{map[string]any{"name": kind, "status": "?", "new": true}}
		}
	}
	note := func(sure bool) {
		if comment != "" {
			t.said[comment] = sure
		}
		if kind != "" {
			t.flags[kind] = sure
		}
	}
	book.change(t, func() { note(false) })
	r := c.write(asked{thing: t, version: version, comment: comment, kind: kind}, "PUT", fmt.Sprintf("/rest/bug/attachment/%d", t.id), body)
	c.unexpected(fmt.Sprintf("an update of attachment %d (%s)", t.id, t.name), r)
	if !r.sure {
		return
	}
	book.change(t, func() { note(true); t.sure = version })
	c.see(t, "after an update")
}

// shownAttachment is one attachment of a response.
type shownAttachment struct {
	ID       int
	FileName string `json:"file_name"`
	Summary  string
	Flags    []struct {
		ID        int
		Name      string
		Status    string
		Requestee string
	}
}

// note compares an attachment with what is known of it, and returns its version.
func (c *client) note(shown shownAttachment) int {
	c.world.book.shows(c.name, "attachment", shown.FileName, shown.ID)
	seen := map[string]bool{}
	for _, flag := range shown.Flags {
		if seen[flag.Name] {
			c.world.book.wrong("%s: attachment %d has two flags %s", c.name, shown.ID, flag.Name)
		}
		seen[flag.Name] = true
		c.world.book.showsFlag(c.name, shown.FileName, flag.Name, flag.ID)
	}
	return versionOf(shown.Summary)
}

// see reads an own attachment by its id, and has to see what was acknowledged last.
func (c *client) see(t *thing, when string) {
	sure, id := t.sure, t.id
	r := c.ask("GET", fmt.Sprintf("/rest/bug/attachment/%d?exclude_fields=data", id), nil)
	if r.away {
		return
	}
	c.unexpected(fmt.Sprintf("a read of its attachment %d (%s) %s", id, t.name, when), r)
	var reply struct {
		Attachments map[string]shownAttachment
	}
	r.into(&reply)
	shown, ok := reply.Attachments[fmt.Sprint(id)]
	if !r.sure {
		return
	}
	if version := c.note(shown); !ok || shown.FileName != t.name || version < sure {
		c.world.book.wrong("%s: %s, attachment %d (%s) shows %q %q, and version %d was acknowledged", c.name, when, id, t.name, shown.FileName, shown.Summary, sure)
	}
}

// list reads the attachments of a bug. Own ones have to be as acknowledged, those of others not older than the last transition.
func (c *client) list(bug int) {
	expected := moment{}
	maps.Copy(expected, c.world.book.expected())
	for _, t := range c.own {
		expected[t.name] = t.sure
	}
	r := c.ask("GET", fmt.Sprintf("/rest/bug/%d/attachment?exclude_fields=data", bug), nil)
	c.unexpected("a list", r)
	if !r.sure {
		return
	}
	var reply struct{ Bugs map[string][]shownAttachment }
	r.into(&reply)
	seen := moment{}
	for _, shown := range reply.Bugs[fmt.Sprint(bug)] {
		if _, twice := seen[shown.FileName]; twice && shown.FileName != "f" {
			c.world.book.wrong("%s: bug %d has %s twice", c.name, bug, shown.FileName)
		}
		seen[shown.FileName] = c.note(shown)
	}
	c.compare(fmt.Sprint("the list of bug ", bug), bug, expected, seen)
}

// compare holds what a read has shown against what it has to show.
func (c *client) compare(what string, bug int, expected, seen moment) {
	book := &c.world.book
	for name, least := range expected {
		book.mu.Lock()
		t := book.things[name]
		concerns := t.bug == bug
		book.mu.Unlock()
		version, ok := seen[name]
		if concerns && (!ok || version < least) {
			book.wrong("%s: %s shows version %d of %s (id %d), and %d was acknowledged before", c.name, what, version, name, t.id, least)
		}
	}
}

// types is one round of a client that writes flag types. Their bug is 0.
func (c *client) types() {
	book := &c.world.book
	switch n := c.random.IntN(6); {
	case n == 0 || len(c.own) == 0:
		made := &thing{name: fmt.Sprintf("%s-%d", c.name, c.count)}
		book.change(made, func() {})
		r := c.write(asked{thing: made}, "POST", "/rest/flag_type", map[string]any{
			"name": made.name, "description": versioned(made.name, 0), "target_type": "attachment", "inclusions": []string{"WebShop"},
		})
		c.unexpected("a create", r)
		if !r.sure {
			return
		}
		var reply struct{ ID int }
		r.into(&reply)
		book.shows(c.name, "flag type", made.name, reply.ID)
		book.change(made, func() { made.made = true })
		c.own = append(c.own, made)
	case n < 3:
		t, version := c.own[c.random.IntN(len(c.own))], 0
		book.change(t, func() { t.tried++; version = t.tried })
		r := c.write(asked{thing: t, version: version}, "PUT", fmt.Sprintf("/rest/flag_type/%d", t.id), map[string]any{"description": versioned(t.name, version)})
		c.unexpected(fmt.Sprintf("an update of flag type %d (%s)", t.id, t.name), r)
		if !r.sure {
			return
		}
		book.change(t, func() { t.sure = version })
	}
	c.seeTypes()
}

func (c *client) seeTypes() {
	expected := moment{}
	maps.Copy(expected, c.world.book.expected())
	for _, t := range c.own {
		expected[t.name] = t.sure
	}
	r := c.ask("GET", "/rest/flag_type/WebShop", nil)
	c.unexpected("a read of flag types", r)
	if !r.sure {
		return
	}
	var reply struct {
		Attachment []struct {
			ID                int
			Name, Description string
		}
	}
	r.into(&reply)
	seen := moment{}
	for _, shown := range reply.Attachment {
		c.world.book.shows(c.name, "flag type", shown.Name, shown.ID)
		seen[shown.Name] = versionOf(shown.Description)
	}
	c.compare("the list of flag types", 0, expected, seen)
}

// rpc is one round of a client of the older interfaces, by JSON-RPC and XML-RPC in turn. It reads the product that moves, as the rules say, and
// comments on another one that stays, which passes through to the old tracker.
func (c *client) rpc() {
	book := &c.world.book
	said := fmt.Sprintf("said by %s %d", c.name, c.count)
	note := func(sure bool) { book.change(nil, func() { book.sharedSaid[said] = sure }) }
	var r result
	switch n := c.random.IntN(4); n {
	case 0, 1:
		note(false)
		over := []string{"JSON-RPC", "XML-RPC"}[n]
		r = c.call(over, "Bug.add_comment", map[string]any{"id": elsewhere, "comment": said, "Bugzilla_api_key": c.key})
		note(r.sure && bytes.Contains(r.text, []byte([]string{`"error":null`, "<params>"}[n])))
	case 2:
		r = c.call("JSON-RPC", "Bug.attachments", map[string]any{
			"ids": []any{c.world.bugs[0]}, "exclude_fields": []string{"data"}, "Bugzilla_api_key": c.key,
		})
		c.seeRPC(r)
	default:
		r = c.call("XML-RPC", "Bug.comments", map[string]any{"ids": []any{elsewhere}, "Bugzilla_api_key": c.key})
	}
	c.unexpected("a call of RPC", r)
}

// elsewhere is a bug of another product, which the rules leave at the old tracker.
const elsewhere = 6

// seeRPC looks at a list by JSON-RPC, which shows each object once and with its id.
func (c *client) seeRPC(r result) {
	var reply struct {
		Result struct{ Bugs map[string][]shownAttachment }
	}
	r.into(&reply)
	seen := map[string]bool{}
	for _, shown := range reply.Result.Bugs[fmt.Sprint(c.world.bugs[0])] {
		if seen[shown.FileName] && shown.FileName != "f" {
			c.world.book.wrong("%s: %s is there twice", c.name, shown.FileName)
		}
		seen[shown.FileName] = true
		c.note(shown)
	}
	if r.sure && len(seen) == 0 {
		c.world.book.wrong("%s: JSON-RPC shows no attachments: %.300s", c.name, r.text)
	}
}
