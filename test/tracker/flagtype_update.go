package tracker

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

var opFlagTypeUpdate = operation{name: "flag_type.update", write: true, do: (*call).flagTypeUpdate}

// flagTypeUpdate changes the selected flag types, all or none (tracker-behaviour.md section 4).
func (c *call) flagTypeUpdate() (any, error) {
	if err := c.needFlagTypeEditor(); err != nil {
		return nil, err
	}
	ids, err := c.selectedTypes()
	if err != nil {
		return nil, err
	}
	delete(c.params, "ids")
	delete(c.params, "names")
	u := typeUpdate{fields: c.params}
	if err := u.takePlaces(c); err != nil {
		return nil, err
	}
	result := []any{}
	for _, id := range ids {
		row, err := u.apply(c, id)
		if err != nil {
			return nil, err
		}
		result = append(result, row)
	}
	rand.Shuffle(len(result), func(i, j int) { result[i], result[j] = result[j], result[i] })
	return object{"flagtypes": result}, nil
}

// selectedTypes lists what ids and names select; the ids are not looked up yet.
func (c *call) selectedTypes() ([]any, error) {
	names, ids := c.params["names"], c.params["ids"]
	if names == nil && ids == nil {
		return nil, fail(codeParamRequired, "updating flag types needs one of the parameters ids and names")
	}
	var selected []any
	if ids != nil {
		list, ok := ids.([]any)
		if !ok {
			return nil, internal("ids are no array")
		}
		selected = append(selected, list...)
	}
	if names != nil {
		list, ok := names.([]any)
		if !ok {
			list = []any{text(names)}
		} else if len(list) == 0 {
			return nil, internal("a query for no names")
		}
		for _, f := range c.tx.flagTypes.all() {
			if slices.ContainsFunc(list, func(n any) bool { return n != nil && strings.EqualFold(text(n), f.name) }) {
				selected = append(selected, int64(f.id))
			}
		}
	}
	return unique(selected), nil
}

// typeUpdate is what a request wants to change.
type typeUpdate struct {
	fields                 object
	inclusions, exclusions *[]place
}

// takePlaces takes inclusions and exclusions out of the fields. Null stays there and is an unknown field (tracker-behaviour.md section 4).
func (u *typeUpdate) takePlaces(c *call) error {
	for _, part := range []struct {
		name string
		into **[]place
	}{{"inclusions", &u.inclusions}, {"exclusions", &u.exclusions}} {
		v := u.fields[part.name]
		if v == nil {
			continue
		}
		list, err := c.places(v)
		if err != nil {
			return err
		}
		delete(u.fields, part.name)
		*part.into = &list
	}
	return nil
}

// apply changes one type and gives its row of the answer.
func (u *typeUpdate) apply(c *call, id any) (object, error) {
	old, full, err := c.administeredType(id)
	if err != nil {
		return nil, err
	}
	f := *old
	if full {
		if err := c.setTypeFields(&f, u.fields); err != nil {
			return nil, err
		}
	} else if len(u.fields) > 0 {
		return nil, fail(codeTypeNotEditable, "you may not change all of the flag type '%s'", f.name)
	}
	changes := typeChanges(old, &f)
	if err := u.setPlaces(c, &f, changes); err != nil {
		return nil, err
	}
	c.tx.flagTypes.put(f.id, &f)
	c.settleFlags()
	c.written = append(c.written, f.id)
	return object{"id": f.id, "name": f.name, "changes": changes}, nil
}

// administeredType finds a type that the caller may administer; full tells whether all of its fields are open to him.
func (c *call) administeredType(id any) (f *flagType, full bool, err error) {
	s := trim(text(id))
	if s == "" {
		return nil, false, fail(codeParamRequired, "a flag type has to be given")
	}
	n, ok := natural(s)
	if !ok {
		return nil, false, fail(codeNotNumeric, "the flag type id '%s' must be numeric", s)
	}
	if f = c.tx.flagTypes.get(n); f == nil {
		return nil, false, errNoObject("flag type", "id", s)
	}
	if c.tx.memberNamed(c.user, editComponentsGroup) {
		return f, true, nil
	}
	mine := c.tx.editedProducts(c.user)
	if !slices.ContainsFunc(mine, func(p *product) bool { return f.listedFor(p.id) }) {
		return nil, false, fail(codeTypeNotEditable, "you may not change the flag type '%s'", f.name)
	}
	foreign := func(p place) bool {
		return !slices.ContainsFunc(mine, func(m *product) bool { return m.id == p.product })
	}
	return f, !slices.ContainsFunc(f.inclusions, foreign), nil
}

// setTypeFields sets fields in the order of their names; an unknown field is code 67399. Two names are swallowed.
func (c *call) setTypeFields(f *flagType, fields object) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v := fields[name]
		switch {
		case slices.Contains(flagTypeFields(), name):
			if err := c.setTypeField(f, name, v); err != nil {
				return err
			}
		case name == "all":
			if nested, ok := v.(object); ok {
				if err := c.setTypeFields(f, nested); err != nil {
					return err
				}
			}
		case name != "clusions":
			return errUnknownMember("a flag type", name)
		}
	}
	return nil
}

func (u *typeUpdate) setPlaces(c *call, f *flagType, changes object) error {
	for _, part := range []struct {
		name  string
		wants *[]place
		into  *[]place
	}{{"inclusions", u.inclusions, &f.inclusions}, {"exclusions", u.exclusions, &f.exclusions}} {
		if part.wants == nil {
			continue
		}
		list := slices.Concat(c.placesOfOthers(*part.into), *part.wants)
		if err := c.mayChangePlaces(*part.into, list); err != nil {
			return err
		}
		*part.into = list
		changes[part.name] = object{"removed": "0", "added": "1"}
	}
	return nil
}

// placesOfOthers are the places that an editor of single products cannot touch and which are kept (tracker-behaviour.md section 4, Permissions).
func (c *call) placesOfOthers(list []place) []place {
	if c.tx.memberNamed(c.user, editComponentsGroup) {
		return nil
	}
	var kept []place
	for _, p := range list {
		if p.product == anyProduct || !c.tx.edits(c.user, c.tx.products.get(p.product)) {
			kept = append(kept, p)
		}
	}
	return kept
}

// typeChanges compares two states of a type, under the names of the answer (tracker-behaviour.md section 4, changes).
func typeChanges(a, b *flagType) object {
	changes := object{}
	put := into(changes)
	put("name", a.name, b.name)
	put("description", a.description, b.description)
	put("cc_list", a.ccList, b.ccList)
	put("sortkey", strconv.Itoa(a.sortkey), strconv.Itoa(b.sortkey))
	put("is_active", text(a.active), text(b.active))
	put("is_requestable", text(a.requestable), text(b.requestable))
	put("is_requesteeble", text(a.requesteeble), text(b.requesteeble))
	put("is_multiplicable", text(a.multiplicable), text(b.multiplicable))
	put("grant_group_id", groupID(a.grantGroup), groupID(b.grantGroup))
	put("request_group_id", groupID(a.requestGroup), groupID(b.requestGroup))
	return changes
}

func groupID(id int) any {
	if id == 0 {
		return nil
	}
	return strconv.Itoa(id)
}
