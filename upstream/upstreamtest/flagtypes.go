package upstreamtest

import (
	"slices"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

func flagTypesDependOnCaller(t *testing.T, s Subject) {
	for _, want := range []struct {
		user   string
		values []string
	}{
		{"", []string{"X"}},
		{"granter", []string{"X", "?", "+", "-"}},
		{"", []string{"X"}},
	} {
		granted, ok := s.types(t, want.user, "TestProduct", "").named("granted")
		if !ok || !slices.Equal(granted.Values, want.values) {
			t.Errorf("user %q sees values %q of granted, want %q", want.user, granted.Values, want.values)
		}
	}
}

func flagTypesOfComponent(t *testing.T, s Subject) {
	if _, ok := s.types(t, "", "TestProduct", "Component A").named("incexc"); !ok {
		t.Error("incexc is missing for Component A")
	}
	if _, ok := s.types(t, "", "TestProduct", "comp/slash").named("incexc"); ok {
		t.Error("incexc shows for comp/slash, which it excludes")
	}
	wantCode(t, s.typesError(t, "", "TestProduct", "Nope"), 51, 404)
}

func flagTypesHideSecret(t *testing.T, s Subject) {
	if _, ok := s.types(t, "secret", "SecretProduct", "").named("secretonly"); !ok {
		t.Error("a member of the group does not see secretonly")
	}
	wantCode(t, s.typesError(t, "", "SecretProduct", ""), 106, 401)
	wantCode(t, s.typesError(t, "dev", "SecretProduct", ""), 106, 401)
	wantCode(t, s.typesError(t, "dev", "No Such Product", ""), 106, 401)
}

func flagTypesOddNames(t *testing.T, s Subject) {
	if _, ok := s.types(t, "dev", "Product/With/Slash", "").named("slashonly"); !ok {
		t.Error("slashonly is missing for Product/With/Slash")
	}
	s.types(t, "dev", "Ünïcode 日本", "")
	s.types(t, "dev", "A+B & C", "")
	wantCode(t, s.typesError(t, "dev", "..", ""), 106, 401)
	wantCode(t, s.typesError(t, "dev", "100%", ""), 106, 401)
}

func create(name string) mapping.FlagTypeCreate {
	request := mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: new(name), Description: new("made by the contract")}}
	request.SetDefaults()
	return request
}

func (s Subject) createType(t *testing.T, request mapping.FlagTypeCreate) int64 {
	t.Helper()
	reply, err := s.do(t, "editor", upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &request})
	created := read[struct {
		ID     int64 `json:"id"`
		FlagID int64 `json:"flag_id"`
	}](t, reply.Document, err)
	if created.ID == 0 || created.FlagID != created.ID {
		t.Fatalf("the reply has id %d and flag_id %d, want one number in both", created.ID, created.FlagID)
	}
	return created.ID
}

func flagTypeCreated(t *testing.T, s Subject) {
	request := create("contract-type")
	request.CCList = new("a@example.com, b@example.com")
	request.Inclusions = &mapping.Scopes{{Product: "TestProduct", Components: []string{"Component A"}}}
	id := s.createType(t, request)
	made, ok := s.types(t, "", "TestProduct", "Component A").named("contract-type")
	if !ok || made.ID != id || made.Type != "bug" || !made.IsActive {
		t.Errorf("got %+v, want flag type %d", made, id)
	}
	if _, ok := s.types(t, "", "TestProduct", "Comp B").named("contract-type"); ok {
		t.Error("the type shows for a component that it does not include")
	}
}

func flagTypeCreateRefused(t *testing.T, s Subject) {
	for _, c := range []struct {
		user         string
		code, status int
	}{{"", 410, 401}, {"plain", 304, 401}, {"invalid", 306, 400}, {"disabled", 301, 401}} {
		_, err := s.do(t, c.user, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: new(create("refused"))})
		wantCode(t, err, c.code, c.status)
	}
	request := create("refused")
	request.Inclusions = &mapping.Scopes{{Product: "No Such Product"}}
	_, err := s.do(t, "editor", upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &request})
	wantCode(t, err, 106, 401)
	if _, ok := s.types(t, "", "TestProduct", "").named("refused"); ok {
		t.Error("a refused flag type exists")
	}
}

func flagTypeWriteShows(t *testing.T, s Subject) {
	s.types(t, "", "TestProduct", "")
	id := s.createType(t, create("shows-at-once"))
	if _, ok := s.types(t, "", "TestProduct", "").named("shows-at-once"); !ok {
		t.Error("the created type is missing in the next read")
	}
	s.updateTypes(t, mapping.FlagTypeUpdate{IDs: []int64{id}, FlagTypeFields: mapping.FlagTypeFields{Name: new("renamed-at-once")}})
	if _, ok := s.types(t, "", "TestProduct", "").named("renamed-at-once"); !ok {
		t.Error("the new name is missing in the next read")
	}
}

type typeChange struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Changes map[string]struct {
		Added   *string `json:"added"`
		Removed *string `json:"removed"`
	} `json:"changes"`
}

func (s Subject) updateTypes(t *testing.T, request mapping.FlagTypeUpdate) []typeChange {
	t.Helper()
	reply, err := s.do(t, "editor", upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &request})
	return read[struct {
		FlagTypes []typeChange `json:"flagtypes"`
	}](t, reply.Document, err).FlagTypes
}

func flagTypesUpdatedAsUnion(t *testing.T, s Subject) {
	changes := s.updateTypes(t, mapping.FlagTypeUpdate{
		IDs: []int64{1, 2}, Names: []string{"dupname"},
		FlagTypeFields: mapping.FlagTypeFields{Sortkey: new(77)},
	})
	ids := make([]int64, 0, len(changes))
	for _, change := range changes {
		ids = append(ids, change.ID)
		if added := change.Changes["sortkey"].Added; added == nil || *added != "77" {
			t.Errorf("flag type %d reports %+v for sortkey, want 77 added", change.ID, change.Changes["sortkey"])
		}
	}
	slices.Sort(ids)
	if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(ids, want) {
		t.Errorf("changed %v, want %v", ids, want)
	}
	if none := s.updateTypes(t, mapping.FlagTypeUpdate{Names: []string{"no/such name"}}); len(none) != 0 {
		t.Errorf("an unknown name changed %v", none)
	}
}

func flagTypeUpdateAllOrNothing(t *testing.T, s Subject) {
	request := mapping.FlagTypeUpdate{IDs: []int64{1, 99999}, FlagTypeFields: mapping.FlagTypeFields{Name: new("half-done")}}
	_, err := s.do(t, "editor", upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &request})
	wantCode(t, err, 51, 404)
	if _, ok := s.types(t, "", "TestProduct", "").named("half-done"); ok {
		t.Error("one of two types was changed")
	}
}
