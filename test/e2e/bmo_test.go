package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portico/test/tracker"
)

// The seven operations before a tracker of the bmo dialect, which `dialect: auto` finds out by itself (tracker-behaviour.md section 9),
// without a cache and with one.
func TestBMO(t *testing.T) {
	for name, text := range map[string]string{
		"flag types are read under the plural name": `
			- GET /rest/flag_type/TestProduct -> | type:tponly
			- GET /rest/flag_type/TestProduct/Component%20A -> | type:twocomps
			- GET /rest/flag_type/TestProduct/comp%2Fslash -> | !type:incexc
			- GET /rest/flag_type/4242/7 -> | type:777
			- GET /rest/flag_type/No%20Such -> 401 106
			- GET /rest/flag_type/TestProduct/No -> 404 51
			granter GET /rest/flag_type/TestProduct -> | type:granted.values=["X","?","+","-"]
			requester GET /rest/flag_type/TestProduct -> | type:granted.values=["X","?"]
			- GET /rest/flag_type/TestProduct -> | type:granted.values=["X"]
			secret GET /rest/flag_type/SecretProduct
			dev GET /rest/flag_type/SecretProduct -> 401 106`,
		"attachments are read": `
			- GET /rest/bug/10/attachment?include_fields=id -> | .={"bugs":{"10":[{"id":13},{"id":14}]},"attachments":{}}
			- GET /rest/bug/attachment/5 -> | attachments.5.data="eA==" | attachments.5.description="one byte"
			- GET /rest/bug/attachment/2 -> 401 304
			insider GET /rest/bug/attachment/2`,
		"attachments are created on several bugs": `
			dev POST /rest/bug/7/attachment upload "ids":[7,8],"is_patch":true,"flags":[{"name":"review","status":"?"}] -> | ids.1 | !ids.2
			set one ids.0
			set two ids.1
			dev GET /rest/bug/attachment/<<$one|$two>> -> | attachments.*.content_type="text/plain" | attachments.*.shown=["review?"]
			- GET /rest/bug/attachment/$one -> | attachments.$one.bug_id=7
			- GET /rest/bug/attachment/$two -> | attachments.$two.bug_id=8`,
		"attachments are updated": `
			dev PUT /rest/bug/attachment/5 {"ids":[5],"summary":"new","flags":[{"name":"review","status":"+"}]} -> ` +
			`| attachments.0.changes={"summary":{"removed":"one byte","added":"new"},"flagtypes.name":{"removed":"","added":"review+"}}
			dev PUT /rest/bug/attachment/4 {"ids":[4],"is_patch":true}
			- GET /rest/bug/attachment/4 -> | attachments.4.content_type="text/plain"`,
	} {
		for _, cached := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h, tape := recorded(t, plan{cached: cached, tracker: tracker.Options{Dialect: tracker.DialectBMO}})
				if err := steps(h, tape).run(t, text); err != nil {
					t.Errorf("cached %v: %v", cached, err)
				}
			})
		}
	}
}

func TestBMO_EveryFormOfCredentials(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{tracker: tracker.Options{Dialect: tracker.DialectBMO}})
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
