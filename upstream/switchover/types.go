package switchover

import (
	"context"
	"slices"

	"portico/mapping"
)

// decideCreate decides where a new flag type belongs. Without inclusions it is for
// every product (interface.md, Inclusion/exclusion format).
func (s *Switchover) decideCreate(ctx context.Context, t *table, q *question, request *mapping.FlagTypeCreate) ([]choice, error) {
	places := t.everywhere
	if request.Inclusions != nil {
		places = t.places(*request.Inclusions)
	}
	return s.decideTypes(ctx, t, q, without(places, request.Exclusions))
}

// without leaves out the places that are excluded. A whole product goes with all
// its components.
func without(places []object, exclusions *mapping.Scopes) []object {
	if exclusions == nil {
		return places
	}
	return slices.DeleteFunc(slices.Clone(places), func(o object) bool {
		return slices.ContainsFunc(*exclusions, func(scope mapping.Scope) bool {
			return sameName(scope.Product, o.product) &&
				(scope.Components == nil || o.component != "" && hasName(scope.Components, o.component))
		})
	})
}

// decideTypes decides for places of flag types. None at all are nowhere, which is
// what the last rules are for.
func (s *Switchover) decideTypes(ctx context.Context, t *table, q *question, places []object) ([]choice, error) {
	if len(places) == 0 {
		places = []object{{kind: typesObject}}
	}
	return s.decideWrite(ctx, t, q, places)
}

// decideUpdate decides where flag types are changed: where they apply now, and
// where they will. Nothing is looked up when all places agree.
func (s *Switchover) decideUpdate(ctx context.Context, t *table, q *question, request *mapping.FlagTypeUpdate) ([]choice, error) {
	everywhere, err := s.decideAll(ctx, t, q, t.everywhere)
	if err != nil {
		return nil, err
	}
	if t.killed != nil || allAlike(everywhere) {
		everywhere[0].object = object{kind: allTypes}
		return everywhere[:1], nil
	}
	ask := []side{t.home, t.home.other()}
	alike := oneSide(everywhere)
	if alike {
		ask = []side{everywhere[0].side}
	}
	places, products, err := s.typePlaces(ctx, t, q, request, ask)
	if err != nil && alike {
		return everywhere, nil // one tracker writes it anyway, and only what is compared is not known
	}
	if err != nil {
		return nil, err
	}
	if request.Inclusions != nil {
		places = append(places, t.places(*request.Inclusions)...)
	}
	made, err := s.decideTypes(ctx, t, q, places)
	if err != nil {
		return nil, err
	}
	return made, unseenElsewhere(everywhere, made[0].side, products)
}

// unseenElsewhere refuses a change of flag types that may apply in a product that
// the caller does not see, where a rule has it written at the other tracker: half
// of the change would be a guess. Of products that no rule names nothing can be
// told, and they go with what the caller sees.
func unseenElsewhere(everywhere []choice, to side, products []string) error {
	for i := range everywhere {
		if name := everywhere[i].object.product; name != "" && everywhere[i].side != to && !hasName(products, name) {
			return refuse("It cannot be told to which of two trackers these flag types belong, so nothing was changed. "+
				"They may apply in product %q, which is written at the other tracker and which the caller does not see.", name)
		}
	}
	return nil
}

// allAlike tells whether all choices have one phase.
func allAlike(made []choice) bool {
	return !slices.ContainsFunc(made, func(c choice) bool { return c.phase != made[0].phase })
}

func oneSide(made []choice) bool {
	return !slices.ContainsFunc(made, func(c choice) bool { return c.side != made[0].side })
}

// typePlaces looks up where flag types apply, in both trackers where both may write
// them: an id that both have may be of two different types, and then it belongs to
// neither alone. It gives the products that the caller sees, too.
func (s *Switchover) typePlaces(
	ctx context.Context, t *table, q *question, request *mapping.FlagTypeUpdate, ask []side,
) (places []object, products []string, err error) {
	l := lookup{what: lookFlagType, ids: request.IDs, names: request.Names}
	selected := l.types()
	seen := make([]bool, len(selected))
	for _, side := range ask {
		answer, err := s.lookAt(ctx, q, s.names[side], l)
		if err != nil {
			return nil, nil, err
		}
		if answer.said != nil && loginError(answer.said) {
			return nil, nil, answer.said
		}
		products = append(products, answer.products...)
		for i, scopes := range answer.scopes {
			if scopes != nil && i < len(seen) {
				seen[i] = true
				places = append(places, t.places(scopes)...)
			}
		}
	}
	for i, known := range seen {
		if !known {
			return nil, nil, refuse("It cannot be told to which of two trackers %s belongs, so nothing was changed. "+
				"It is in no product that the caller sees.", selected[i])
		}
	}
	return places, products, nil
}
