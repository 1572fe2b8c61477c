package tracker

var opFlagTypeCreate = operation{name: "flag_type.create", success: 201, write: true, do: (*call).flagTypeCreate}

// flagTypeCreate makes a flag type (tracker-behaviour.md section 3).
func (c *call) flagTypeCreate() (any, error) {
	if err := c.needFlagTypeEditor(); err != nil {
		return nil, err
	}
	for _, name := range []string{"name", "description"} {
		if !truth(c.params[name]) {
			return nil, fail(codeParamRequired, "creating a flag type needs the parameter '%s'", name)
		}
	}
	everywhere := []place{{anyProduct, anyComponent}}
	inclusions, err := c.placesOr("inclusions", everywhere)
	if err != nil {
		return nil, err
	}
	exclusions, err := c.placesOr("exclusions", nil)
	if err != nil {
		return nil, err
	}
	f, err := c.newFlagType()
	if err != nil {
		return nil, err
	}
	f.id = c.tx.flagTypes.next()
	if err := c.mayChangePlaces(nil, inclusions); err != nil {
		return nil, err
	}
	if err := c.mayChangePlaces(nil, exclusions); err != nil {
		return nil, err
	}
	f.inclusions, f.exclusions = inclusions, exclusions
	c.tx.flagTypes.put(f.id, f)
	c.written = []int{f.id}
	return object{"id": f.id}, nil
}

// needFlagTypeEditor refuses who may not administer flag types of any product.
func (c *call) needFlagTypeEditor() error {
	if len(c.tx.editedProducts(c.user)) == 0 {
		return fail(codeNotAllowed, "only members of the group '%s' may add or change flag types", editComponentsGroup)
	}
	return nil
}

// newFlagType checks the fields in the order of their names; null is the default (tracker-behaviour.md section 3).
func (c *call) newFlagType() (*flagType, error) {
	f := plainType(targetBug, "", "", 1, nil)
	for _, name := range append(flagTypeFields(), "target_type") {
		if v := c.params[name]; v != nil {
			if err := c.setTypeField(&f, name, v); err != nil {
				return nil, err
			}
		}
	}
	return &f, nil
}

func checkTarget(v any) (string, error) {
	if target := text(v); target == targetBug || target == targetAttachment {
		return target, nil
	}
	return "", fail(codeBadTarget, "'%s' is no target type: it must be bug or attachment", text(v))
}
