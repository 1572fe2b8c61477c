package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portico/test/tracker"
)

// The seven operations before a tracker of the bmo dialect, which `dialect: auto` finds out by itself (tracker-behaviour.md section 9).

func bmo(cached bool) plan {
	return plan{cached: cached, tracker: tracker.Options{Dialect: tracker.DialectBMO}}
}

// onBMO runs a test before such a tracker, without a cache and with one.
func onBMO(t *testing.T, test func(t *testing.T, h *environment)) {
	t.Helper()
	for name, cached := range map[string]bool{"uncached": false, "cached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, bmo(cached)))
		})
	}
}

func TestBMO_FlagTypesAreReadUnderThePluralName(t *testing.T) {
	onBMO(t, func(t *testing.T, h *environment) {
		h.lists(t, "TestProduct", "tponly", true)
		h.lists(t, "TestProduct/Component%20A", "twocomps", true)
		h.lists(t, "TestProduct/comp%2Fslash", "incexc", false)
		h.lists(t, "4242/7", "777", true)
		h.get(t, "", "/rest/flag_type/No%20Such").fails(t, 401, 106)
		h.get(t, "", "/rest/flag_type/TestProduct/No").fails(t, 404, 51)
		for user, want := range map[string]string{"granter": "X?+-", "requester": "X?", "": "X"} {
			if got := h.values(t, user, "granted"); got != want {
				t.Errorf("%q sees the values %q, want %q", user, got, want)
			}
		}
		h.get(t, "secret", "/rest/flag_type/SecretProduct").ok(t, 200)
		h.get(t, "dev", "/rest/flag_type/SecretProduct").fails(t, 401, 106)
	})
}

func TestBMO_FlagTypesCannotBeWritten(t *testing.T) {
	onBMO(t, func(t *testing.T, h *environment) {
		h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d"}`).refused(t, 404, 32614)
		h.put(t, "editor", "/rest/flag_type/1", `{"sortkey":5}`).refused(t, 404, 32614)
		h.post(t, "editor", "/rest/flag_type", `{"name":"n"}`).refused(t, 404, 32614)
		h.post(t, "", "/rest/flag_type", `{"name":"n","description":"d"}`).refused(t, 404, 32614)
		if done := h.writes(); len(done) != 0 {
			t.Errorf("the tracker executed %v", done)
		}
	})
}

func TestBMO_AttachmentsAreRead(t *testing.T) {
	onBMO(t, func(t *testing.T, h *environment) {
		is(t, h.get(t, "", "/rest/bug/10/attachment?include_fields=id").ok(t, 200).tree(t), `{"bugs":{"10":[{"id":13},{"id":14}]},"attachments":{}}`)
		is(t, walk(t, h.attachment(t, "", 5), "data"), `"eA=="`)
		is(t, walk(t, h.attachment(t, "", 5), "description"), `"one byte"`) // a member of this dialect's own
		h.get(t, "", "/rest/bug/attachment/2").fails(t, 401, 304)
		h.attachment(t, "insider", 2)
	})
}

func TestBMO_AttachmentsAreCreatedWithTheInterfacesAnswer(t *testing.T) {
	onBMO(t, func(t *testing.T, h *environment) {
		made, _ := h.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":[7,8],"is_patch":true,"flags":[{"name":"review","status":"?"}]`)).
			ok(t, 201).at(t, "ids").([]any)
		if len(made) != 2 {
			t.Fatalf("got the ids %v, want two", made)
		}
		for i, bug := range []string{"7", "8"} {
			id := integer(t, made[i])
			is(t, walk(t, h.attachment(t, "", id), "bug_id"), bug)
			is(t, walk(t, h.attachment(t, "", id), "content_type"), `"text/plain"`)
			h.holds(t, id, "review?")
		}
	})
}

func TestBMO_AttachmentsAreUpdated(t *testing.T) {
	onBMO(t, func(t *testing.T, h *environment) {
		is(t, h.edit(t, 5, `{"ids":[5],"summary":"new","flags":[{"name":"review","status":"+"}]}`),
			`{"summary":{"removed":"one byte","added":"new"},"flagtypes.name":{"removed":"","added":"review+"}}`)
		h.edit(t, 4, `{"ids":[4],"is_patch":true}`)
		is(t, walk(t, h.attachment(t, "", 4), "content_type"), `"text/plain"`)
	})
}

func TestBMO_EveryFormOfCredentials(t *testing.T) {
	t.Parallel()
	tape := &recording{}
	p := bmo(false)
	p.before = tape.over
	h := open(t, p)
	key := h.keys["admin"]
	for _, f := range forms(key, h.login(t)) {
		for _, op := range seven() {
			if f.writes && op.method == http.MethodGet || strings.HasSuffix(op.name, "e flag type") {
				continue
			}
			got := h.do(t, f.with(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}))
			if got.status != op.status {
				t.Errorf("%s with %s: status %d, want %d: %.200s", op.name, f.name, got.status, op.status, got.body)
			}
			if strings.Contains(tape.last(t).uri, key) {
				t.Errorf("%s with %s: the key is in the address, although this tracker reads headers", op.name, f.name)
			}
		}
	}
}
