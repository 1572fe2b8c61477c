package e2e

import (
	"fmt"
	"testing"
)

// interface.md section 1.7.

// flagged attaches a file with flags to bug 7 and gives the attachment's id.
func (h *environment) flagged(t testing.TB, flags string) int {
	t.Helper()
	return h.attach(t, "dev", "7", `"content_type":"text/plain","flags":`+flags)
}

// refusesFlags demands that a create with these flags is refused by Portico.
func (h *environment) refusesFlags(t testing.TB, flags string, status, code int) {
	t.Helper()
	h.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"text/plain","flags":`+flags)).refused(t, status, code)
}

func TestInterface_FlagOnCreate_ByName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.holds(t, h.flagged(t, `[{"name":"review","status":"?"},{"name":"single","status":"+"}]`), "review?", "single+")
}

func TestInterface_FlagOnCreate_ByTypeID(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.holds(t, h.flagged(t, `[{"type_id":1,"status":"-"},{"type_id":"9","status":"?"}]`), "review-", "single?")
	h.holds(t, h.flagged(t, `[{"type_id":1,"name":"review","status":"-"}]`), "review-")
}

func TestInterface_FlagOnCreate_StatusIsRequired(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, flags := range []string{`[{"name":"review"}]`, `[{"type_id":1,"status":""}]`, `[{"name":"review","status":null}]`, `[{"name":"review","status":"!"}]`} {
		h.refusesFlags(t, flags, 400, 129)
	}
	if asked := h.asked("attachment.create"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_FlagOnCreate_TakesTheFourStatuses(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, status := range []string{"?", "+", "-"} {
		h.holds(t, h.flagged(t, fmt.Sprintf(`[{"name":"review","status":%q}]`, status)), "review"+status)
	}
	h.holds(t, h.flagged(t, `[{"name":"review","status":"X"}]`))
}

func TestInterface_FlagOnCreate_RequesteeWhereTheTypeAllowsOne(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.holds(t, h.flagged(t, `[{"name":"review","status":"?","requestee":"plain@example.com"}]`), "review?(plain@example.com)")
	h.post(t, "dev", "/rest/bug/7/attachment",
		upload(`"content_type":"text/plain","flags":[{"name":"norequestee","status":"?","requestee":"plain@example.com"}]`)).fails(t, 400, 131)
}

func TestInterface_FlagOnCreate_NeedsTypeIDOrName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, flags := range []string{`[{"status":"?"}]`, `[{}]`, `[{"status":"?","requestee":"plain@example.com"}]`, `[null]`} {
		h.refusesFlags(t, flags, 400, 50)
	}
	for _, flags := range []string{`{"name":"review","status":"?"}`, `"review?"`, `["review?"]`} {
		h.refusesFlags(t, flags, 400, 53)
	}
	if asked := h.asked("attachment.create"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_FlagOnCreate_NewIsAccepted(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.holds(t, h.flagged(t, `[{"name":"review","status":"?","requestee":"plain@example.com","new":true}]`), "review?(plain@example.com)")
}

// interface.md section 1.8.

// reflag updates the flags of an attachment as a developer.
func (h *environment) reflag(t testing.TB, id int, flags string) *reply {
	t.Helper()
	return h.put(t, "dev", fmt.Sprint("/rest/bug/attachment/", id), fmt.Sprintf(`{"ids":[%d],"flags":%s}`, id, flags))
}

// flagID gives the id of the only flag of an attachment.
func (h *environment) flagID(t testing.TB, id int) int {
	t.Helper()
	return integer(t, walk(t, h.attachment(t, "dev", id), "flags", 0, "id"))
}

func TestInterface_FlagOnUpdate_ByNameCreatesOrUpdates(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 5, `[{"name":"review","status":"?"}]`).ok(t, 200)
	h.holds(t, 5, "review?")
	h.reflag(t, 5, `[{"name":"review","status":"+"}]`).ok(t, 200)
	h.holds(t, 5, "review+")
}

func TestInterface_FlagOnUpdate_ByTypeIDCreatesOrUpdates(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 5, `[{"type_id":1,"status":"?"}]`).ok(t, 200)
	h.reflag(t, 5, `[{"type_id":1,"status":"-"}]`).ok(t, 200)
	h.holds(t, 5, "review-")
}

func TestInterface_FlagOnUpdate_TypeIDIsRequiredForAnAmbiguousName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 1, `[{"name":"dupname","status":"?"}]`).fails(t, 400, 133)
	h.reflag(t, 1, `[{"type_id":4,"status":"?"}]`).ok(t, 200)
	h.holds(t, 1, "dupname?", "single?")
}

func TestInterface_FlagOnUpdate_ByID(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 6, `[{"id":4,"status":"+"}]`).ok(t, 200)
	h.holds(t, 6, "granted+", "dupname?", "review?(granter@example.com)", "review+", "single+")
}

func TestInterface_FlagOnUpdate_IDIsRequiredWhereSeveralOfANameAreSet(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 6, `[{"name":"review","status":"+"}]`).fails(t, 400, 132)
	h.reflag(t, 6, `[{"type_id":1,"status":"+"}]`).fails(t, 400, 132)
	h.reflag(t, 6, `[{"id":1,"status":"+"}]`).ok(t, 200)
}

func TestInterface_FlagOnUpdate_StatusIsRequired(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, flags := range []string{`[{"id":1}]`, `[{"name":"single"}]`, `[{"type_id":9,"status":"x"}]`, `[{"id":1,"status":1}]`} {
		h.reflag(t, 6, flags).refused(t, 400, 129)
	}
	if asked := h.asked("attachment.update"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_FlagOnUpdate_XClearsTheFlag(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 6, `[{"id":1,"status":"X"},{"name":"single","status":"X"},{"type_id":8,"status":"X"}]`).ok(t, 200)
	h.holds(t, 6, "dupname?", "review?(plain@example.com)")
}

func TestInterface_FlagOnUpdate_RequesteeWhereTheTypeAllowsOne(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 6, `[{"id":4,"status":"?","requestee":"granter@example.com"}]`).ok(t, 200)
	h.holds(t, 6, "granted+", "dupname?", "review?(granter@example.com)", "review?(granter@example.com)", "single+")
	h.reflag(t, 5, `[{"name":"norequestee","status":"?","requestee":"plain@example.com"}]`).fails(t, 400, 131)
}

func TestInterface_FlagOnUpdate_NewForcesCreation(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 5, `[{"name":"review","status":"?"}]`).ok(t, 200)
	for _, form := range []string{`true`, `1`, `"1"`, `"true"`} {
		h.reflag(t, 5, `[{"name":"review","status":"+","new":`+form+`}]`).ok(t, 200)
	}
	h.holds(t, 5, "review?", "review+", "review+", "review+", "review+")
	for _, form := range []string{`false`, `0`, `"0"`, `"false"`} {
		h.reflag(t, 5, `[{"name":"review","status":"-","new":`+form+`}]`).fails(t, 400, 132)
	}
}

func TestInterface_FlagOnUpdate_NeedsTypeIDOrIDOrName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reflag(t, 6, `[{"status":"+"}]`).refused(t, 400, 50)
	h.reflag(t, 6, `[{"status":"+","new":true,"requestee":"plain@example.com"}]`).refused(t, 400, 50)
	if asked := h.asked("attachment.update"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_FlagOnUpdate_ASingleSetFlagIsUpdatedUnlessNew(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, by := range []string{`"name":"review"`, `"type_id":1`} {
		id := h.flagged(t, `[{"name":"review","status":"?"}]`)
		before := h.flagID(t, id)
		h.reflag(t, id, `[{`+by+`,"status":"+"}]`).ok(t, 200)
		h.holds(t, id, "review+")
		if after := h.flagID(t, id); after != before {
			t.Errorf("by %s flag %d became flag %d", by, before, after)
		}
		h.reflag(t, id, `[{`+by+`,"status":"-","new":true}]`).ok(t, 200)
		h.holds(t, id, "review+", "review-")
	}
}

// interface.md section 2.

func TestInterface_States_FlagStatusValues(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, status := range []string{"?", "+", "-", "?", "-", "+", "?"} {
		h.reflag(t, 5, fmt.Sprintf(`[{"name":"review","status":%q}]`, status)).ok(t, 200)
		h.holds(t, 5, "review"+status)
	}
	h.reflag(t, 5, `[{"name":"review","status":"X"}]`).ok(t, 200)
	h.holds(t, 5)
}

func TestInterface_States_BooleansAreSettableByUpdate(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, field := range []string{"is_obsolete", "is_private", "is_patch"} {
			for _, on := range []string{"1", "0"} {
				h.put(t, "insider", "/rest/bug/attachment/5", fmt.Sprintf(`{"ids":[5],%q:%s}`, field, on)).ok(t, 200)
				is(t, walk(t, h.attachment(t, "insider", 5), field), on)
			}
		}
	})
}
