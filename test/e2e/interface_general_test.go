package e2e

import (
	"fmt"
	"strings"
	"testing"
)

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

func TestInterface_General_PathsAreRelativeToTheBaseURL(t *testing.T) {
	for _, below := range []string{"", "/bugs", "/a/b/bugzilla"} {
		t.Run("tracker at "+below+"/", func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{below: below})
			for _, op := range seven() {
				h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
			}
			h.types(t, "", "TestProduct/comp%2Fslash")
			h.types(t, "", "Product%2FWith%2FSlash")
			h.get(t, "", "/rest/version").ok(t, 200)
		})
	}
}

func TestInterface_General_RequestBodiesAreJSON(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, op := range seven() {
		if op.body == "" {
			continue
		}
		for _, wrong := range []string{`{`, `{"a":1,}`, `[]`, `"text"`, `{'name':'n'}`, `name: n`, `{"a":1}{"b":2}`, "\ufeff{}", `{"a":"` + "\xff" + `"}`} {
			h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: wrong}).refused(t, 400, 32000)
		}
		h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
	}
	if done := h.writes(); len(done) != 4 {
		t.Errorf("the tracker executed %v, want the four good writes", done)
	}
}

func TestInterface_General_ResponseBodiesAreJSON(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, op := range seven() {
			good := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
			bad := h.do(t, ask{method: op.method, path: "/rest" + op.path, body: op.body})
			bad.tree(t)
			for _, r := range []*reply{good, bad} {
				if kind := r.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
					t.Errorf("%s: status %d of type %q", op.name, r.status, kind)
				}
			}
		}
	})
}

// interface.md section 1.

func TestInterface_Service_FlagTypesAreListedCreatedAndUpdated(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.lists(t, "TestProduct", "made", false)
		id := h.newType(t, "made", `"inclusions":{"TestProduct":["Comp B"]}`)
		h.lists(t, "TestProduct", "made", true)
		h.lists(t, "TestProduct/Comp%20B", "made", true)
		h.lists(t, "TestProduct/Component%20A", "made", false)
		h.changed(t, id, `{"name":"renamed"}`)
		h.lists(t, "TestProduct/Comp%20B", "renamed", true)
		h.lists(t, "TestProduct/Comp%20B", "made", false)
	})
}

func TestInterface_Service_FlagTypesAreForBugsOrForAttachments(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.newType(t, "forbugs", `"target_type":"bug"`)
	h.newType(t, "forfiles", `"target_type":"attachment"`)
	h.reflag(t, 5, `[{"name":"forfiles","status":"?"}]`).ok(t, 200)
	h.holds(t, 5, "forfiles?")
	h.reflag(t, 5, `[{"name":"forbugs","status":"?"}]`).fails(t, 404, 51)
}

func TestInterface_Service_AttachmentsAreFetchedAddedAndUpdated(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.attach(t, "dev", "7", `"content_type":"text/plain"`)
		is(t, h.get(t, "", "/rest/bug/7/attachment").ok(t, 200).at(t, "bugs", "7", 0, "id"), fmt.Sprint(id))
		is(t, walk(t, h.attachment(t, "", id), "bug_id"), `7`)
		if made, _ := h.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":[7,8],"content_type":"text/plain"`)).
			ok(t, 201).at(t, "ids").([]any); len(made) != 2 {
			t.Errorf("got %v, want an attachment on each of two bugs", made)
		}
		h.edit(t, id, fmt.Sprintf(`{"ids":[%d],"summary":"new","flags":[{"name":"review","status":"+"}]}`, id))
		is(t, walk(t, h.attachment(t, "", id), "summary"), `"new"`)
		h.holds(t, id, "review+")
	})
}

// interface.md section 4.

func TestInterface_Authentication_CreateFlagTypeNeedsALoginInEditcomponents(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		body := `{"name":"n","description":"d"}`
		h.post(t, "", "/rest/flag_type", body).fails(t, 401, 410)
		h.post(t, "dev", "/rest/flag_type", body).fails(t, 401, 304)
		h.post(t, "invalid", "/rest/flag_type", body).fails(t, 400, 306)
		h.lists(t, "TestProduct", "n", false)
		h.post(t, "editor", "/rest/flag_type", body).ok(t, 201)
		h.lists(t, "TestProduct", "n", true)
	})
}

func TestInterface_Authentication_UpdateFlagTypeNeedsALoginInEditcomponents(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		body := `{"description":"other"}`
		h.put(t, "", "/rest/flag_type/1", body).fails(t, 401, 410)
		h.put(t, "dev", "/rest/flag_type/1", body).fails(t, 401, 304)
		h.put(t, "revoked", "/rest/flag_type/1", body).fails(t, 400, 306)
		is(t, h.types(t, "", "TestProduct").field(t, "1", "description"), `"review flag"`)
		h.put(t, "editor", "/rest/flag_type/1", body).ok(t, 200)
		is(t, h.types(t, "", "TestProduct").field(t, "1", "description"), `"other"`)
	})
}

func TestInterface_Authentication_PrivateAttachmentsForTheGroupOrTheSubmitter(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.get(t, "", "/rest/bug/attachment/2").fails(t, 401, 304)
		h.get(t, "plain", "/rest/bug/attachment/2").fails(t, 401, 304)
		is(t, walk(t, h.attachment(t, "insider", 2), "summary"), `"private text"`)
		seen := h.get(t, "exinsider", "/rest/bug/1/attachment?include_fields=summary").ok(t, 200)
		if !strings.Contains(string(seen.body), "private of former insider") || strings.Contains(string(seen.body), "private text") {
			t.Errorf("the submitter sees %s", seen.body)
		}
	})
}

// interface.md section 5.

func TestInterface_Errors_MissingRequiredParametersOfCreateFlagType(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.post(t, "editor", "/rest/flag_type", `{"name":"n","target_type":"bug"}`).refused(t, 400, 50)
	h.post(t, "editor", "/rest/flag_type", `{"description":"d","sortkey":5}`).refused(t, 400, 50)
}

// interface.md section 6.

func TestInterface_Limits_SortkeyIsFrom1To32767(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, good := range []string{`1`, `32767`, `"1"`, `100`} {
		h.newType(t, "n", `"sortkey":`+good)
		h.changed(t, 1, `{"sortkey":`+good+`}`)
	}
	before := len(h.writes())
	for _, wrong := range []string{`0`, `-1`, `32768`, `1.5`, `"many"`, `[1]`, `1e9`, `99999999999999999999`} {
		h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d","sortkey":`+wrong+`}`).refused(t, 400, 1104)
		h.put(t, "editor", "/rest/flag_type/1", `{"sortkey":`+wrong+`}`).refused(t, 400, 1104)
	}
	if done := h.writes(); len(done) != before {
		t.Errorf("the tracker executed %v", done[before:])
	}
}

// interface.md section 6.

func TestInterface_Versioning_PathsBeginWithRest(t *testing.T) {
	t.Parallel()
	h := open(t, plan{pass: []string{"/xmlrpc.cgi"}})
	for _, op := range seven() {
		h.do(t, ask{method: op.method, path: op.path, user: "admin", body: op.body}).refused(t, 404, 32614)
		h.do(t, ask{method: op.method, path: "/REST" + op.path, user: "admin", body: op.body}).refused(t, 404, 32614)
		h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
	}
}
