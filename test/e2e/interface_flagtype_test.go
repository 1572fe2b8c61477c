package e2e

import (
	"fmt"
	"testing"
)

// interface.md section 1.1.

// everyType calls visit for every flag type that a reply lists.
func everyType(t testing.TB, r *reply, visit func(kind string, one any)) {
	t.Helper()
	seen := 0
	for _, kind := range []string{"bug", "attachment"} {
		list, _ := r.at(t, kind).([]any)
		for _, one := range list {
			seen++
			visit(kind, one)
		}
	}
	if seen < 10 {
		t.Fatalf("only %d flag types are listed", seen)
	}
}

func TestInterface_FlagType_IDIsAUniqueInteger(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		seen := map[int]bool{}
		everyType(t, h.types(t, "", "TestProduct"), func(_ string, one any) {
			id := integer(t, walk(t, one, "id"))
			if seen[id] {
				t.Errorf("the id %d is there twice", id)
			}
			seen[id] = true
		})
	})
}

func TestInterface_FlagType_NameIsAString(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		everyType(t, h.types(t, "", "TestProduct"), func(_ string, one any) { text(t, walk(t, one, "name")) })
		is(t, h.types(t, "", "TestProduct").field(t, "1", "name"), `"review"`)
	})
}

func TestInterface_FlagType_TypeIsBugOrAttachment(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		everyType(t, h.types(t, "", "TestProduct"), func(kind string, one any) {
			is(t, walk(t, one, "type"), fmt.Sprintf("%q", kind))
		})
	})
}

func TestInterface_FlagType_DescriptionIsAString(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		everyType(t, h.types(t, "", "TestProduct"), func(_ string, one any) { text(t, walk(t, one, "description")) })
		is(t, h.types(t, "", "TestProduct").field(t, "review", "description"), `"review flag"`)
	})
}

func TestInterface_FlagType_ValuesAreThoseAUserCanSet(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		is(t, h.types(t, "", "TestProduct").field(t, "review", "values"), `["X","?","+","-"]`)
		for user, want := range map[string]string{"granter": "X?+-", "requester": "X?", "dev": "X", "": "X"} {
			if got := h.values(t, user, "granted"); got != want {
				t.Errorf("%q can set the values %q of granted, want %q", user, got, want)
			}
		}
	})
}

func TestInterface_FlagType_IsRequesteebleSaysWhetherUsersCanBeAsked(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		list := h.types(t, "", "TestProduct")
		is(t, list.field(t, "review", "is_requesteeble"), `true`)
		is(t, list.field(t, "norequestee", "is_requesteeble"), `false`)
		h.put(t, "dev", "/rest/bug/attachment/5",
			`{"ids":[5],"flags":[{"name":"norequestee","status":"?","requestee":"plain@example.com"}]}`).fails(t, 400, 131)
		h.edit(t, 5, `{"ids":[5],"flags":[{"name":"review","status":"?","requestee":"plain@example.com"}]}`)
	})
}

func TestInterface_FlagType_IsMultiplicableSaysWhetherSeveralCanBeSet(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		list := h.types(t, "", "TestProduct")
		is(t, list.field(t, "review", "is_multiplicable"), `true`)
		is(t, list.field(t, "single", "is_multiplicable"), `false`)
		twice := `{"ids":[5],"flags":[{"name":%[1]q,"status":"?","new":true},{"name":%[1]q,"status":"+","new":true}]}`
		h.put(t, "dev", "/rest/bug/attachment/5", fmt.Sprintf(twice, "single")).fails(t, 400, 32000)
		h.edit(t, 5, fmt.Sprintf(twice, "review"))
		h.holds(t, 5, "review?", "review+")
	})
}

func TestInterface_FlagType_IsActiveSaysWhetherItCanBeSet(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		list := h.types(t, "", "TestProduct")
		everyType(t, list, func(_ string, one any) {
			if _, ok := walk(t, one, "is_active").(bool); !ok {
				t.Errorf("is_active is no boolean in %v", one)
			}
		})
		is(t, list.field(t, "review", "is_active"), `true`)
		is(t, list.field(t, "inactive", "is_active"), `false`)
		h.put(t, "dev", "/rest/bug/attachment/5", `{"ids":[5],"flags":[{"name":"inactive","status":"?"}]}`).fails(t, 400, 134)
	})
}
