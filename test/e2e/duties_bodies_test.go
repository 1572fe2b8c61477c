package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portico/test/tracker"
)

// docs/reference/clients.md, section 4: the duties that are about the text of requests and answers.

// optionsWith gives a reference tracker with quirks.
func optionsWith(quirks ...tracker.Quirk) tracker.Options { return tracker.Options{Quirks: quirks} }

func TestDuty_06_EmptyMembersAreKept(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		is(t, h.get(t, "", "/rest/bug/2/attachment").ok(t, 200).tree(t), `{"bugs":{"2":[]},"attachments":{}}`)
		is(t, h.get(t, "", "/rest/bug/attachment/99999").ok(t, 200).tree(t), `{"bugs":{},"attachments":{}}`)
		is(t, h.get(t, "", "/rest/bug/2/attachment?ids=7&ids=8").ok(t, 200).tree(t), `{"bugs":{"2":[],"7":[],"8":[]},"attachments":{}}`)
		is(t, walk(t, h.attachment(t, "", 5), "flags"), `[]`)
		is(t, h.get(t, "", "/rest/bug/10/attachment").ok(t, 200).at(t, "bugs", "10", 0, "flags"), `[]`)
		is(t, h.edit(t, 1, `{"ids":[1]}`), `{}`)
		is(t, h.put(t, "editor", "/rest/flag_type/no-such-name", `{"sortkey":1}`).ok(t, 200).tree(t), `{"flagtypes":[]}`)
	})
}

func TestDuty_07_FieldsAreFiltered(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, query := range []string{
			"include_fields=id,size", "include_fields=id&include_fields=size", "include_fields=id%20size", "include_fields=id+size",
			"include_fields=id,size,data&exclude_fields=data", "include_fields=id&include_fields=size,data&exclude_fields=data&exclude_fields=summary",
		} {
			is(t, h.get(t, "", "/rest/bug/attachment/5?"+query).ok(t, 200).tree(t), `{"bugs":{},"attachments":{"5":{"id":5,"size":1}}}`)
			is(t, h.get(t, "", "/rest/bug/5/attachment?"+query).ok(t, 200).tree(t), `{"bugs":{"5":[{"id":11,"size":12}]},"attachments":{}}`)
		}
		one := h.get(t, "", "/rest/bug/attachment/4?exclude_fields=data").ok(t, 200)
		if _, there := member(one.at(t, "attachments", "4"), "data"); there || len(one.body) > 10_000 {
			t.Error("data is there although it is excluded")
		}
		one.at(t, "attachments", "4", "summary")
	})
}

func TestDuty_08_IDsAsStringsOrNotAtAll(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for i, body := range []string{
		`{"ids":["1"],"summary":"round %d"}`, `{"ids":["1",5],"summary":"round %d"}`, `{"ids":"1","summary":"round %d"}`, `{"ids":1,"summary":"round %d"}`, `{"summary":"round %d"}`,
	} {
		h.edit(t, 1, fmt.Sprintf(body, i))
		is(t, walk(t, h.attachment(t, "", 1), "summary"), fmt.Sprintf(`"round %d"`, i))
	}
	for _, ids := range []string{`"ids":["7"]`, `"ids":["7",8]`, `"ids":"7"`, `"ids":7`, ``, `"ids":["alias-eight",7]`} {
		if ids != "" {
			ids += ","
		}
		h.attach(t, "dev", "7", ids+`"content_type":"text/plain"`)
	}
}

func TestDuty_08_BooleansAsZeroAndOne(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	// What a client of the Bugsy kind read, it sends back.
	one, _ := h.attachment(t, "dev", 3).(map[string]any)
	sent := map[string]any{"summary": "sent back", "comment": "", "flags": []any{}}
	for _, name := range []string{"file_name", "content_type", "is_patch", "is_private", "is_obsolete"} {
		sent[name] = one[name]
	}
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	is(t, h.edit(t, 3, string(body)), `{"summary":{"removed":"obsolete patch","added":"sent back"}}`)
	for value, want := range map[string]string{`0`: "0", `"0"`: "0", `false`: "0", `"false"`: "0", `""`: "0", `1`: "1", `"1"`: "1", `true`: "1", `"true"`: "1"} {
		h.edit(t, 5, `{"is_obsolete":`+value+`}`)
		is(t, walk(t, h.attachment(t, "", 5), "is_obsolete"), want)
	}
}

func TestDuty_08_UnknownMembersGoOn(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	h.attach(t, "dev", "7", `"content_type":"text/plain","encoding":"base64","bug_flags":[{"a":[1,2.50,null]}],"minor_update":1`)
	var arrived map[string]json.RawMessage
	if err := json.Unmarshal(tape.last(t).body, &arrived); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"encoding": `"base64"`, "bug_flags": `[{"a":[1,2.50,null]}]`, "minor_update": `1`} {
		if got := string(arrived[name]); got != want {
			t.Errorf("%s arrived as %s, want %s", name, got, want)
		}
	}
	// On an update the tracker refuses what it does not know, and the client is told so by the tracker itself.
	answer := h.put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1],"summary":"s","minor_update":1}`).fails(t, 400, 67399)
	if reason := answer.header.Get("Portico-Error"); reason != "" {
		t.Errorf("Portico refused it itself: %s", reason)
	}
	h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d","colour":"red"}`).ok(t, 201)
	h.put(t, "editor", "/rest/flag_type/1", `{"colour":"red"}`).fails(t, 400, 67399)
}

func TestDuty_08_ContentTypeOfAnyKind(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.do(t, ask{method: "GET", path: "/rest/bug/5/attachment", header: http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"python-bugzilla/3.2.0"},
	}}).ok(t, 200)
	for i, kind := range []string{"application/json", "application/json; charset=utf-8", "text/plain", "application/vnd.api+json", "APPLICATION/JSON", "nonsense"} {
		h.do(t, ask{
			method: "PUT", path: "/rest/bug/attachment/1", user: "dev", body: fmt.Sprintf(`{"summary":"round %d"}`, i), header: http.Header{"Content-Type": {kind}},
		}).ok(t, 200)
		is(t, walk(t, h.attachment(t, "", 1), "summary"), fmt.Sprintf(`"round %d"`, i))
	}
	form := url.Values{"ids": {"1"}, "summary": {"by a form"}, "is_patch": {"1"}, "Bugzilla_api_key": {h.keys["dev"]}}
	h.do(t, ask{
		method: "PUT", path: "/rest/bug/attachment/1", body: form.Encode(), header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	}).ok(t, 200)
	is(t, walk(t, h.attachment(t, "", 1), "summary"), `"by a form"`)
}

func TestDuty_09_CreatedIDsAreIntegers(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	list, _ := h.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":["7","8"],"content_type":"text/plain"`)).ok(t, 201).at(t, "ids").([]any)
	if len(list) != 2 {
		t.Fatalf("got %v", list)
	}
	for _, id := range list {
		integer(t, id)
	}
	made := h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d"}`).ok(t, 201)
	integer(t, made.at(t, "id"))
	integer(t, made.at(t, "flag_id"))
}

func TestDuty_10_IDsOfTheQueryJoinThePath(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for path, want := range map[string]string{
			// libmozdata: the first id in the path, the others in the query
			"/rest/bug/2/attachment?ids=7&ids=10&include_fields=id": `{"bugs":{"2":[],"7":[],"10":[{"id":13},{"id":14}]},"attachments":{}}`,
			"/rest/bug/attachment/1?attachment_ids=5&attachment_ids=11&include_fields=id&include_fields=bug_id": `{"bugs":{},"attachments":{
				"1":{"id":1,"bug_id":1},"5":{"id":5,"bug_id":1},"11":{"id":11,"bug_id":5}}}`,
			// Perceval: all ids in the query, that of the path too
			"/rest/bug/10/attachment?ids=10&ids=2&exclude_fields=data&include_fields=id": `{"bugs":{"10":[{"id":13},{"id":14}],"2":[]},"attachments":{}}`,
			// bugbite: one kind on the path of the other
			"/rest/bug/2/attachment?attachment_ids=13&include_fields=id": `{"bugs":{"2":[]},"attachments":{"13":{"id":13}}}`,
			"/rest/bug/attachment/13?ids=2&include_fields=id":            `{"bugs":{"2":[]},"attachments":{"13":{"id":13}}}`,
		} {
			is(t, h.get(t, "", path).ok(t, 200).tree(t), want)
		}
	})
}

func TestDuty_12_NoErrorKeyInASuccess(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, op := range seven() {
			h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
		}
	})
}

func TestDuty_13_TimesAreOfOneShape(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, id := range []int{6, h.attach(t, "dev", "7", `"content_type":"text/plain","flags":[{"name":"review","status":"?"}]`)} {
			one := h.attachment(t, "", id)
			times := []any{walk(t, one, "creation_time"), walk(t, one, "last_change_time")}
			flags, _ := walk(t, one, "flags").([]any)
			for _, flag := range flags {
				times = append(times, walk(t, flag, "creation_date"), walk(t, flag, "modification_date"))
			}
			for _, at := range times {
				wantTime(t, at)
			}
		}
		wantTime(t, h.put(t, "dev", "/rest/bug/attachment/1", `{"summary":"s"}`).ok(t, 200).at(t, "attachments", 0, "last_change_time"))
	})
}

func TestDuty_15_ErrorsAreCompactAndBeginWithAKnownMember(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, r := range []*reply{
			h.post(t, "", "/rest.cgi/bug/7/attachment", upload("")), h.post(t, "dev", "/rest.cgi/bug/7/attachment", `{`),
			h.post(t, "dev", "/rest/bug/7/attachment", `{}`), h.post(t, "dev", "/rest/bug/99999/attachment", upload(`"content_type":"text/plain"`)),
			h.post(t, "invalid", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)), h.get(t, "", "/rest/bug/4/attachment"),
			h.get(t, "", "/rest/flag_type/No"), h.get(t, "", "/rest/flag_type/TestProduct/No"), h.get(t, "", "/rest/bug/attachment/x"),
			h.put(t, "editor", "/rest/flag_type/99999", `{"sortkey":5}`), h.put(t, "editor", "/rest/bug/attachment", `{"ids":[1]}`),
			h.get(t, "", "/rest/bug/attachment/1/"),
		} {
			if r.status < 400 {
				t.Errorf("%s %s: status %d", r.ask.method, r.ask.path, r.status)
			}
			var compact any
			if err := json.Unmarshal(r.body, &compact); err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(r.body), ":")
			if first != `{"error"` && first != `{"code"` && first != `{"message"` && first != `{"documentation"` {
				t.Errorf("%s %s: the answer begins with %.40s", r.ask.method, r.ask.path, r.body)
			}
			if strings.ContainsAny(string(r.body), "\r\n\t") || strings.Contains(string(r.body), `": `) {
				t.Errorf("%s %s: the answer is not compact: %s", r.ask.method, r.ask.path, r.body)
			}
		}
	})
}

func TestDuty_16_BooleansOfAttachmentsAreIntegers(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, path := range []string{"/rest/bug/1/attachment?exclude_fields=data", "/rest.cgi/bug/1/attachment?exclude_fields=data"} {
			list, _ := h.get(t, "insider", path).ok(t, 200).at(t, "bugs", "1").([]any)
			for _, one := range list {
				for _, name := range []string{"is_private", "is_obsolete", "is_patch"} {
					if n := integer(t, walk(t, one, name)); n != 0 && n != 1 {
						t.Errorf("%s is %d", name, n)
					}
				}
			}
		}
	})
}
