package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// interface.md section 1, Flag type (parameters for create and update).

func TestInterface_FlagTypeParameters_NameIsRequiredOnCreate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.post(t, "editor", "/rest/flag_type", `{"description":"d"}`).refused(t, 400, 50)
	h.newType(t, "given", "")
	h.lists(t, "TestProduct", "given", true)
}

func TestInterface_FlagTypeParameters_NameIsOptionalOnUpdate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	is(t, h.changed(t, 1, `{"name":"audit"}`), `{"name":{"removed":"review","added":"audit"}}`)
	h.changed(t, 1, `{"description":"the name stays"}`)
	is(t, h.types(t, "", "TestProduct").field(t, "1", "name"), `"audit"`)
}

func TestInterface_FlagTypeParameters_DescriptionIsRequiredOnCreate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.post(t, "editor", "/rest/flag_type", `{"name":"n"}`).refused(t, 400, 50)
	id := h.newType(t, "n", "")
	is(t, h.types(t, "", "TestProduct").field(t, fmt.Sprint(id), "description"), `"made by a test"`)
}

func TestInterface_FlagTypeParameters_DescriptionIsOptionalOnUpdate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	is(t, h.changed(t, 1, `{"description":"other"}`), `{"description":{"removed":"review flag","added":"other"}}`)
	h.changed(t, 1, `{"sortkey":3}`)
	is(t, h.types(t, "", "TestProduct").field(t, "1", "description"), `"other"`)
}

func TestInterface_FlagTypeParameters_TargetTypeIsBugOrAttachment(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for target, id := range map[string]int{
		"bug": h.newType(t, "b", `"target_type":"bug"`), "attachment": h.newType(t, "a", `"target_type":"attachment"`),
	} {
		is(t, h.types(t, "", "TestProduct").field(t, fmt.Sprint(id), "type"), fmt.Sprintf("%q", target))
	}
	h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d","target_type":"comment"}`).refused(t, 400, 68000)
	h.newType(t, "optional", "")
}

func TestInterface_FlagTypeParameters_TargetTypeIsNotListedForUpdate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.put(t, "editor", "/rest/flag_type/1", `{"target_type":"bug"}`).fails(t, 400, 67399)
	is(t, h.types(t, "", "TestProduct").field(t, "1", "type"), `"attachment"`)
}

func TestInterface_FlagTypeParameters_SortkeyOrdersLists(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	late, early := h.newType(t, "aaa", `"sortkey":32767`), h.newType(t, "zzz", `"sortkey":32766`)
	if order := h.order(t); slices.Index(order, early) > slices.Index(order, late) {
		t.Errorf("%d with the smaller sortkey comes after %d in %v", early, late, order)
	}
	h.changed(t, late, `{"sortkey":1}`)
	if order := h.order(t); slices.Index(order, early) < slices.Index(order, late) {
		t.Errorf("%d has the greater sortkey now and comes before %d in %v", early, late, order)
	}
}

// order lists the ids of the flag types for bugs.
func (h *environment) order(t testing.TB) []int {
	t.Helper()
	list, _ := h.types(t, "", "TestProduct").at(t, "bug").([]any)
	var ids []int
	for _, one := range list {
		ids = append(ids, integer(t, walk(t, one, "id")))
	}
	return ids
}

func TestInterface_FlagTypeParameters_SortkeyMayBeOmitted(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.newType(t, "unsorted", "")
	h.lists(t, "TestProduct", "unsorted", true)
	h.changed(t, "unsorted", `{"description":"still none"}`)
}

// switches are the four booleans of a flag type, with how a read shows them; is_requestable shows in values alone.
func switches() map[string]string {
	return map[string]string{
		"is_active": "is_active", "is_specifically_requestable": "is_requesteeble", "is_multiplicable": "is_multiplicable", "is_requestable": "",
	}
}

// shows tells what a read says of one of the switches.
func (h *environment) shows(t testing.TB, id int, parameter string) bool {
	t.Helper()
	if field := switches()[parameter]; field != "" {
		on, ok := h.types(t, "", "TestProduct").field(t, fmt.Sprint(id), field).(bool)
		if !ok {
			t.Fatalf("%s is no boolean", field)
		}
		return on
	}
	return strings.Contains(h.values(t, "", fmt.Sprint(id)), "?")
}

// testSwitch demands the default true, and that create and update can say true and false.
func testSwitch(t *testing.T, parameter string) {
	t.Helper()
	bothWays(t, func(t *testing.T, h *environment) {
		if id := h.newType(t, "plain", ""); !h.shows(t, id, parameter) {
			t.Errorf("%s is not true where it is omitted", parameter)
		}
		id := h.newType(t, "off", fmt.Sprintf("%q:false", parameter))
		if h.shows(t, id, parameter) {
			t.Errorf("%s is not false after a create that says so", parameter)
		}
		for _, on := range []bool{true, false} {
			h.changed(t, id, fmt.Sprintf("{%q:%v}", parameter, on))
			if h.shows(t, id, parameter) != on {
				t.Errorf("%s is not %v after an update that says so", parameter, on)
			}
		}
		h.changed(t, id, `{"sortkey":9}`)
		if h.shows(t, id, parameter) {
			t.Errorf("%s changed by an update that does not name it", parameter)
		}
	})
}

func TestInterface_FlagTypeParameters_IsActiveDefaultsToTrue(t *testing.T) {
	testSwitch(t, "is_active")
}

func TestInterface_FlagTypeParameters_IsRequestableDefaultsToTrue(t *testing.T) {
	testSwitch(t, "is_requestable")
}

func TestInterface_FlagTypeParameters_IsSpecificallyRequestableDefaultsToTrue(t *testing.T) {
	testSwitch(t, "is_specifically_requestable")
}

func TestInterface_FlagTypeParameters_IsMultiplicableDefaultsToTrue(t *testing.T) {
	testSwitch(t, "is_multiplicable")
}

func TestInterface_FlagTypeParameters_CCListIsAnArrayOfAddresses(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	id := h.newType(t, "watched", `"cc_list":["a@example.com","b@example.com"]`)
	is(t, h.changed(t, id, `{"cc_list":["c@example.com"]}`),
		`{"cc_list":{"removed":"a@example.com, b@example.com","added":"c@example.com"}}`)
	is(t, h.changed(t, id, `{"cc_list":[]}`), `{"cc_list":{"removed":"c@example.com","added":""}}`)
	h.newType(t, "unwatched", `"cc_list":[]`)
	h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d","cc_list":[{"mail":"a@example.com"}]}`).refused(t, 400, 53)
	h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d","cc_list":["no address"]}`).refused(t, 400, 501)
}

func TestInterface_FlagTypeParameters_CCListNeedNotBeLogins(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.newType(t, "watched", `"cc_list":["nobody.here@elsewhere.example"]`)
}

func TestInterface_FlagTypeParameters_GrantGroupMayGrant(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := fmt.Sprint(h.newType(t, "guarded", `"target_type":"attachment","grant_group":"granters"`))
		for user, want := range map[string]string{"granter": "X?+-", "dev": "X?", "": "X?"} {
			if got := h.values(t, user, id); got != want {
				t.Errorf("%q can set %q, want %q", user, got, want)
			}
		}
		h.put(t, "dev", "/rest/bug/attachment/5", `{"ids":[5],"flags":[{"name":"guarded","status":"+"}]}`).fails(t, 400, 130)
		h.put(t, "granter", "/rest/bug/attachment/5", `{"ids":[5],"flags":[{"name":"guarded","status":"+"}]}`).ok(t, 200)
	})
}

func TestInterface_FlagTypeParameters_WithoutGrantGroupAllMayGrant(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.newType(t, "open", "")
		for _, user := range []string{"", "nothing", "dev"} {
			if got := h.values(t, user, fmt.Sprint(id)); got != "X?+-" {
				t.Errorf("%q can set %q of a type without groups", user, got)
			}
		}
		h.changed(t, id, `{"grant_group":"granters"}`)
		if got := h.values(t, "", fmt.Sprint(id)); got != "X?" {
			t.Errorf("anonymous can set %q of a type with a grant group", got)
		}
		h.changed(t, id, `{"grant_group":""}`)
		if got := h.values(t, "", fmt.Sprint(id)); got != "X?+-" {
			t.Errorf("anonymous can set %q after the grant group was taken away", got)
		}
	})
}

func TestInterface_FlagTypeParameters_RequestGroupMayRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.newType(t, "asked", `"grant_group":"granters","request_group":"requesters"`)
		for user, want := range map[string]string{"granter": "X?+-", "requester": "X?", "dev": "X", "": "X"} {
			if got := h.values(t, user, fmt.Sprint(id)); got != want {
				t.Errorf("%q can set %q, want %q", user, got, want)
			}
		}
		h.changed(t, id, `{"is_requestable":false}`)
		if got := h.values(t, "requester", fmt.Sprint(id)); got != "X" {
			t.Errorf("the request group can set %q of a type that is not requestable", got)
		}
	})
}

func TestInterface_FlagTypeParameters_WithoutRequestGroupAllMayRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.newType(t, "asked", `"grant_group":"granters","request_group":"requesters"`)
		h.changed(t, id, `{"request_group":""}`)
		if got := h.values(t, "", fmt.Sprint(id)); got != "X?" {
			t.Errorf("anonymous can set %q, want X and ?", got)
		}
	})
}

func TestInterface_FlagTypeParameters_RequestGroupAloneHasNoEffect(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.newType(t, "asked", `"request_group":"requesters"`)
		for _, user := range []string{"", "dev", "requester"} {
			if got := h.values(t, user, fmt.Sprint(id)); got != "X?+-" {
				t.Errorf("%q can set %q although there is no grant group", user, got)
			}
		}
	})
}
