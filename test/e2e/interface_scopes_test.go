package e2e

import (
	"fmt"
	"testing"
)

// interface.md section 1.3, for both parameters and both operations.

// place is where a flag type is listed or not.
type place struct {
	path  string
	lists bool
}

// testScope creates a flag type with one parameter, updates another one to the same, and looks where they are listed.
func testScope(t *testing.T, parameter string, places ...place) {
	t.Helper()
	bothWays(t, func(t *testing.T, h *environment) {
		h.newType(t, "made-so", parameter)
		id := h.newType(t, "changed-so", "")
		h.lists(t, "TestProduct", "changed-so", true)
		h.changed(t, id, "{"+parameter+"}")
		for _, where := range places {
			h.lists(t, where.path, "made-so", where.lists)
			h.lists(t, where.path, "changed-so", where.lists)
		}
	})
}

func TestInterface_Scopes_InclusionsAsArrayOfProducts(t *testing.T) {
	testScope(t, `"inclusions":["TestProduct","4242"]`,
		place{"TestProduct", true}, place{"TestProduct/Component%20A", true}, place{"TestProduct/Comp%20B", true},
		place{"4242", true}, place{"4242/7", true}, place{"ClosedProduct", false})
}

func TestInterface_Scopes_InclusionsAsObjectOfComponents(t *testing.T) {
	testScope(t, `"inclusions":{"TestProduct":["Component A","comp/slash"],"4242":["7"]}`,
		place{"TestProduct", true}, place{"TestProduct/Component%20A", true}, place{"TestProduct/comp%2Fslash", true},
		place{"TestProduct/Comp%20B", false}, place{"4242/7", true}, place{"ClosedProduct", false})
}

func TestInterface_Scopes_ExclusionsAsArrayOfProducts(t *testing.T) {
	testScope(t, `"exclusions":["TestProduct","ClosedProduct"]`,
		place{"TestProduct", false}, place{"TestProduct/Component%20A", false}, place{"ClosedProduct", false}, place{"4242", true})
}

func TestInterface_Scopes_ExclusionsAsObjectOfComponents(t *testing.T) {
	testScope(t, `"exclusions":{"TestProduct":["Comp B"]}`,
		place{"TestProduct/Comp%20B", false}, place{"TestProduct/Component%20A", true}, place{"4242", true})
}

func TestInterface_Scopes_AreOptional(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		id := h.newType(t, "anywhere", "")
		for _, product := range []string{"TestProduct", "4242", "ClosedProduct", "Product%2FWith%2FSlash"} {
			h.lists(t, product, "anywhere", true)
		}
		h.changed(t, id, `{"inclusions":["4242"]}`)
		h.changed(t, id, `{"description":"the places stay"}`)
		h.lists(t, "4242", "anywhere", true)
		h.lists(t, "TestProduct", "anywhere", false)
	})
}

func TestInterface_Scopes_ProductsWithSlashInTheirName(t *testing.T) {
	testScope(t, `"inclusions":["Product/With/Slash"]`, place{"Product%2FWith%2FSlash", true}, place{"TestProduct", false})
}

// What the tracker has no way to be told must not become less than was asked.
func TestInterface_Scopes_NeverSilentlyNarrowed(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, parameter := range []string{"inclusions", "exclusions"} {
		body := fmt.Sprintf(`{"name":"n","description":"d",%q:{"Product/With/Slash":["Comp One"]}}`, parameter)
		h.post(t, "editor", "/rest/flag_type", body).refused(t, 400, 53)
		body = fmt.Sprintf(`{%q:{"A+B & C":["100%% c"]}}`, parameter)
		h.put(t, "editor", "/rest/flag_type/1", body).refused(t, 400, 53)
	}
	if done := h.writes(); len(done) != 0 {
		t.Errorf("the tracker executed %v", done)
	}
}

func TestInterface_Scopes_OtherFormsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, value := range []string{`"TestProduct"`, `7`, `true`, `{"TestProduct":"Comp B"}`, `[["TestProduct"]]`} {
		for _, parameter := range []string{"inclusions", "exclusions"} {
			h.post(t, "editor", "/rest/flag_type", fmt.Sprintf(`{"name":"n","description":"d",%q:%s}`, parameter, value)).refused(t, 400, 53)
			h.put(t, "editor", "/rest/flag_type/1", fmt.Sprintf(`{%q:%s}`, parameter, value)).refused(t, 400, 53)
		}
	}
	if h.asked("flag_type.create")+h.asked("flag_type.update") != 0 {
		t.Error("the tracker was asked")
	}
}
