package e2e

import (
	"fmt"
	"slices"
	"testing"

	"portico/proxy"
)

// interface.md section 1.4.

func TestInterface_FlagTypeChange_IDAndNewName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	record := h.put(t, "editor", "/rest/flag_type/1", `{"name":"audit"}`).ok(t, 200).at(t, "flagtypes", 0)
	is(t, walk(t, record, "id"), `1`)
	is(t, walk(t, record, "name"), `"audit"`)
}

func TestInterface_FlagTypeChange_KeysAreFieldsThatChanged(t *testing.T) {
	t.Parallel()
	h := open(t, plan{responses: proxy.ResponsesInterface})
	id := h.newType(t, "before", "")
	got := h.changed(t, id, `{"name":"after","description":"made by a test","sortkey":1,"is_active":true,"is_specifically_requestable":false,
		"grant_group":"granters","request_group":"requesters"}`)
	is(t, got, `{"name":{"removed":"before","added":"after"},"is_specifically_requestable":{"removed":"1","added":"0"},
		"grant_group":{"removed":"","added":"17"},"request_group":{"removed":"","added":"18"}}`)
	is(t, h.changed(t, id, `{"name":"after"}`), `{}`)
}

func TestInterface_FlagTypeChange_AddedAndRemovedAreStrings(t *testing.T) {
	t.Parallel()
	for _, form := range []proxy.Responses{proxy.ResponsesTracker, proxy.ResponsesInterface} {
		h := open(t, plan{responses: form})
		got := h.changed(t, 1, `{"sortkey":32767,"description":"other"}`)
		is(t, got, `{"sortkey":{"removed":"10","added":"32767"},"description":{"removed":"review flag","added":"other"}}`)
	}
}

func TestInterface_FlagTypeChange_BooleansAreOneAndZero(t *testing.T) {
	t.Parallel()
	for _, form := range []proxy.Responses{proxy.ResponsesTracker, proxy.ResponsesInterface} {
		h := open(t, plan{responses: form})
		is(t, h.changed(t, 1, `{"is_active":false,"is_multiplicable":false,"is_requestable":false}`),
			`{"is_active":{"removed":"1","added":"0"},"is_multiplicable":{"removed":"1","added":"0"},"is_requestable":{"removed":"1","added":"0"}}`)
		is(t, h.changed(t, 1, `{"is_active":true}`), `{"is_active":{"removed":"0","added":"1"}}`)
	}
}

// interface.md section 3.1.

func TestInterface_GetFlagTypes_ByProduct(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.lists(t, "TestProduct", "tponly", true)
		h.lists(t, "4242", "777", true)
		h.lists(t, "4242", "tponly", false)
	})
}

func TestInterface_GetFlagTypes_ByProductAndComponent(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.lists(t, "TestProduct/Component%20A", "twocomps", true)
		h.lists(t, "TestProduct/Comp%20B", "twocomps", true)
		h.lists(t, "TestProduct/TestComponent", "twocomps", false)
	})
}

func TestInterface_GetFlagTypes_ProductMustBeValid(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.get(t, "", "/rest/flag_type/No%20Such%20Product").fails(t, 401, 106)
		h.get(t, "dev", "/rest/flag_type/No%20Such%20Product/TestComponent").fails(t, 401, 106)
		h.get(t, "dev", "/rest/flag_type/").refused(t, 404, 32614)
	})
}

func TestInterface_GetFlagTypes_ComponentMustBeOfTheProduct(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.get(t, "", "/rest/flag_type/TestProduct/7").fails(t, 404, 51)
		h.types(t, "", "4242/7")
	})
}

func TestInterface_GetFlagTypes_SlashInNamesIsEncoded(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.lists(t, "Product%2FWith%2FSlash", "slashonly", true)
		h.lists(t, "Product%2FWith%2FSlash/Comp%20One", "slashonly", true)
		h.lists(t, "TestProduct/comp%2Fslash", "incexc", false)
		h.lists(t, "TestProduct/comp%2Fslash", "tponly", true)
		h.lists(t, "%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC/K%C3%B6mp", "review", true)
		h.lists(t, "A+B%20%26%20C/100%25%20c", "review", true)
	})
}

func TestInterface_GetFlagTypes_ResponseHasTwoArrays(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		object, _ := h.types(t, "", "TestProduct").tree(t).(map[string]any)
		if len(object) != 2 {
			t.Errorf("the answer has %d keys, want two", len(object))
		}
		for _, kind := range []string{"bug", "attachment"} {
			list, ok := object[kind].([]any)
			if !ok || len(list) == 0 {
				t.Fatalf("%s is no array of flag types", kind)
			}
			for _, field := range []string{"id", "name", "type", "description", "values", "is_requesteeble", "is_multiplicable", "is_active"} {
				walk(t, list[0], field)
			}
		}
	})
}

// interface.md section 3.2.

func TestInterface_CreateFlagType_TakesTheCreateParameters(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.types(t, "", "TestProduct")
		id := h.newType(t, "full", `"target_type":"attachment","inclusions":{"TestProduct":["Comp B"]},"exclusions":["4242"],"sortkey":7,
			"is_active":false,"is_requestable":true,"cc_list":["a@example.com"],"is_specifically_requestable":false,"is_multiplicable":false,
			"grant_group":"granters","request_group":"requesters"`)
		found, ok := h.types(t, "granter", "TestProduct").flagType(t, "full")
		if !ok {
			t.Fatal("the new flag type is not listed")
		}
		is(t, found, fmt.Sprintf(`{"id":%d,"name":"full","description":"made by a test","type":"attachment","values":["X","?","+","-"],
			"is_active":false,"is_requesteeble":false,"is_multiplicable":false,"inclusions":["Comp B"]}`, id))
	})
}

func TestInterface_CreateFlagType_MissingRequiredParametersAreErrors(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, body := range []string{`{}`, `{"name":"n"}`, `{"description":"d"}`, `{"name":"","description":"d"}`, `{"name":null,"description":"d"}`, ``} {
		h.post(t, "editor", "/rest/flag_type", body).refused(t, 400, 50)
	}
	if asked := h.asked("flag_type.create"); asked != 0 {
		t.Errorf("the tracker was asked %d times", asked)
	}
}

func TestInterface_CreateFlagType_RespondsWithTheIDUnderBothNames(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	made := h.post(t, "editor", "/rest/flag_type", `{"name":"n","description":"d"}`).ok(t, 201)
	id := integer(t, made.at(t, "id"))
	if flagID := integer(t, made.at(t, "flag_id")); id == 0 || flagID != id {
		t.Errorf("id is %d and flag_id %d", id, flagID)
	}
	is(t, h.types(t, "", "TestProduct").field(t, fmt.Sprint(id), "name"), `"n"`)
}

// interface.md section 3.3.

// updated lists the ids of an update's records in ascending order.
func (h *environment) updated(t testing.TB, path, body string) []int {
	t.Helper()
	records, _ := h.put(t, "editor", "/rest/flag_type/"+path, body).ok(t, 200).at(t, "flagtypes").([]any)
	ids := []int{}
	for _, record := range records {
		ids = append(ids, integer(t, walk(t, record, "id")))
	}
	slices.Sort(ids)
	return ids
}

func wantIDs(t testing.TB, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInterface_UpdateFlagType_ByID(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wantIDs(t, h.updated(t, "1", `{"sortkey":44}`), 1)
}

func TestInterface_UpdateFlagType_ByName(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wantIDs(t, h.updated(t, "needinfo", `{"sortkey":44}`), 2)
	id := h.newType(t, "with/slash%and日本", "")
	wantIDs(t, h.updated(t, "with%2Fslash%25and%E6%97%A5%E6%9C%AC", `{"sortkey":44}`), id)
}

func TestInterface_UpdateFlagType_IDsAreAdditional(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wantIDs(t, h.updated(t, "1", `{"ids":[2,9],"sortkey":44}`), 1, 2, 9)
	wantIDs(t, h.updated(t, "needinfo", `{"ids":[1],"sortkey":45}`), 1, 2)
}

func TestInterface_UpdateFlagType_NamesAreAdditional(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wantIDs(t, h.updated(t, "review", `{"names":["needinfo","single"],"sortkey":44}`), 1, 2, 9)
	wantIDs(t, h.updated(t, "1", `{"names":["needinfo"],"ids":[9],"sortkey":45}`), 1, 2, 9)
	wantIDs(t, h.updated(t, "1", `{"names":["777"],"sortkey":46}`), 1, 15)
}

func TestInterface_UpdateFlagType_AllOfOneNameChange(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wantIDs(t, h.updated(t, "dupname", `{"sortkey":44}`), 3, 4, 5)
	wantIDs(t, h.updated(t, "review", `{"names":["dupname"],"sortkey":45}`), 1, 3, 4, 5)
}

func TestInterface_UpdateFlagType_ParametersApplyToEverySelectedType(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		h.types(t, "", "TestProduct")
		h.updated(t, "1", `{"ids":[9],"names":["needinfo"],"description":"the same for all","is_active":false}`)
		list := h.types(t, "", "TestProduct")
		for _, id := range []string{"1", "2", "9"} {
			is(t, list.field(t, id, "description"), `"the same for all"`)
			is(t, list.field(t, id, "is_active"), `false`)
		}
	})
}

func TestInterface_UpdateFlagType_RespondsWithChangeRecords(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	got := h.put(t, "editor", "/rest/flag_type/1", `{"sortkey":11}`).ok(t, 200)
	is(t, got.tree(t), `{"flagtypes":[{"id":1,"name":"review","changes":{"sortkey":{"removed":"10","added":"11"}}}]}`)
}
