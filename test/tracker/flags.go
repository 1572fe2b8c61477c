package tracker

import (
	"cmp"
	"slices"
	"strings"
)

// sheet is the flags of one bug or attachment while a request edits them (tracker-behaviour.md section 8).
type sheet struct {
	c   *call
	bug *bug
	// att is nil for the flags of the bug itself.
	att   *attachment
	owner *[]flag
	types []*flagType
	flags []*flag
}

// newSheet starts from the flags that the attachment has, or the bug where there is no attachment.
func (c *call) newSheet(b *bug, a *attachment) *sheet {
	target, owner := targetBug, &b.flags
	if a != nil {
		target, owner = targetAttachment, &a.flags
	}
	s := &sheet{c: c, bug: b, att: a, owner: owner, types: c.tx.flagTypesFor(target, b.product, b.component)}
	if c.server.mojolicious() { // inactive types are unknown there
		s.types = slices.DeleteFunc(s.types, func(t *flagType) bool { return !t.active })
	}
	s.flags = listed(c.tx.sortedFlags(*owner))
	return s
}

// edit sets the flags that a request gives, and gives the differences as they stand in changes.
func (s *sheet) edit(v any) (removed, added string, err error) {
	changed, fresh, err := s.resolve(v)
	if err == nil {
		err = s.apply(changed, fresh)
	}
	if err != nil {
		return "", "", err
	}
	removed, added = s.store(*s.owner)
	return removed, added, nil
}

// sortedFlags puts flags in the order of lists: type sortkey, type name, flag id; new flags last within their type.
func (t *tx) sortedFlags(flags []flag) []flag {
	flags = slices.Clone(flags)
	slices.SortStableFunc(flags, func(a, b flag) int {
		if c := compareFlagTypes(t.flagTypes.get(a.flagType), t.flagTypes.get(b.flagType)); c != 0 {
			return c
		}
		if a.id == 0 || b.id == 0 {
			return cmp.Compare(b.id, a.id)
		}
		return cmp.Compare(a.id, b.id)
	})
	return flags
}

func (s *sheet) find(id any) *flag {
	n, ok := natural(trim(text(id)))
	return firstMatch(s.flags, func(f *flag) bool { return ok && f.id == n && f.id != 0 })
}

func (s *sheet) typeByID(id any) *flagType {
	n, ok := natural(trim(text(id)))
	return firstMatch(s.types, func(t *flagType) bool { return ok && t.id == n })
}

func (s *sheet) setOf(types ...*flagType) []*flag {
	return slices.DeleteFunc(slices.Clone(s.flags), func(f *flag) bool {
		return !slices.ContainsFunc(types, func(t *flagType) bool { return t.id == f.flagType })
	})
}

// flagRequest is one item of a request whose lookup is done: an existing flag, or the type of a new one.
type flagRequest struct {
	item     object
	flag     *flag
	flagType *flagType
}

// resolve looks up what the items of a request mean: those that change flags first, then those that make new ones.
func (s *sheet) resolve(v any) (changed, fresh []flagRequest, err error) {
	if !truth(v) {
		return nil, nil, nil
	}
	items, ok := v.([]any)
	if !ok {
		return nil, nil, internal("flags are no array")
	}
	for _, item := range items {
		o, ok := item.(object)
		if !ok && item != nil {
			return nil, nil, internal("a flag is no object")
		}
		r, err := s.lookup(o)
		if err != nil {
			return nil, nil, err
		}
		if r.flag != nil {
			changed = append(changed, r)
		} else {
			fresh = append(fresh, r)
		}
	}
	return changed, fresh, nil
}

// lookup follows the order id, type_id, name.
func (s *sheet) lookup(o object) (flagRequest, error) {
	r := flagRequest{item: o}
	fresh := truth(o["new"])
	switch id, typeID, name := o["id"], o["type_id"], o["name"]; {
	case truth(id):
		if r.flag = s.find(id); r.flag == nil {
			return r, errNoObject("flag", "id", id)
		}
	case truth(typeID):
		if r.flagType = s.typeByID(typeID); r.flagType == nil {
			return r, errNoObject("flag type", "id", typeID)
		}
		if !fresh {
			return s.only(r, typeID, r.flagType)
		}
	case truth(name):
		types := slices.DeleteFunc(slices.Clone(s.types), func(t *flagType) bool { return t.name != text(name) })
		switch {
		case len(types) > 1:
			return r, fail(codeFlagTypeNotUnique, "more than one flag type is named '%s' here: give its id", text(name))
		case len(types) == 0:
			return r, errNoObject("flag type", "name", name)
		}
		if r.flagType = types[0]; !fresh {
			return s.only(r, name, types...)
		}
	}
	return r, nil
}

// only takes the one flag of a type that is set, if there is one; several are an error.
func (s *sheet) only(r flagRequest, named any, types ...*flagType) (flagRequest, error) {
	switch set := s.setOf(types...); len(set) {
	case 0:
	case 1:
		r.flag = set[0]
	default:
		return r, fail(codeFlagNotUnique, "the flag '%s' is set several times: give the id of one", text(named))
	}
	return r, nil
}

// apply sets flags: those that exist first, then new ones.
func (s *sheet) apply(changed, fresh []flagRequest) error {
	for _, r := range slices.Concat(changed, fresh) {
		var err error
		switch {
		case r.flag != nil:
			err = s.change(r)
		case r.flagType != nil:
			err = s.create(r)
		default:
			err = fail(codeParamRequired, "setting a flag needs one of the parameters id, type_id and name")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sheet) change(r flagRequest) error {
	if !slices.Contains(s.flags, r.flag) {
		return nil // it goes away anyway, for instance because the attachment becomes obsolete
	}
	t := s.typeByID(int64(r.flag.flagType))
	if t == nil {
		if t = s.c.retarget(r.flag, s.types, s.flags); t == nil {
			return nil
		}
		r.flag.flagType = t.id
	}
	return s.set(r.flag, t, r.item)
}

func (s *sheet) create(r flagRequest) error {
	if text(r.item["status"]) == "X" {
		return nil
	}
	t := r.flagType
	if !t.active {
		return fail(codeFlagTypeInactive, "the flag type '%s' is inactive and takes no new flags", t.name)
	}
	if !t.multiplicable && len(s.setOf(t)) > 0 {
		return fail(codeUser, "the flag '%s' can be set only once here", t.name)
	}
	return s.set(&flag{flagType: t.id}, t, r.item)
}

// set checks and takes over status, requestee and setter, in this order.
func (s *sheet) set(f *flag, t *flagType, item object) error {
	was := *f
	status := text(item["status"])
	if !strings.Contains("X+-?", status) || len(status) != 1 || status == "?" && was.status != "?" && !t.requestable {
		if f.id != 0 {
			return fail(codeFlagStatus, "'%s' is no status for the flag with the id %d", status, f.id)
		}
		return fail(codeFlagStatus, "'%s' is no status for a flag of the type '%s'", status, t.name)
	}
	requestee, err := s.requestee(was, t, status, item["requestee"])
	if err != nil {
		return err
	}
	setter := was.setter
	if status != was.status || requestee != was.requestee {
		if setter, err = s.setter(was, t, status, item["setter"]); err != nil {
			return err
		}
	}
	f.status, f.requestee, f.setter = status, requestee, setter
	switch {
	case status == "X":
		s.flags = slices.DeleteFunc(s.flags, func(o *flag) bool { return o == f })
	case !slices.Contains(s.flags, f):
		s.flags = append(s.flags, f)
	}
	return nil
}

// requestee finds who is asked; leaving it out asks no user (tracker-behaviour.md section 8).
func (s *sheet) requestee(was flag, t *flagType, status string, v any) (int, error) {
	if status != "?" || !truth(v) {
		return 0, nil
	}
	if !scalar(v) {
		return 0, internal("the requestee is a reference")
	}
	login := trim(text(v))
	if login == "" {
		return 0, fail(codeParamRequired, "a user has to be named")
	}
	u := s.c.tx.userNamed(login)
	switch {
	case u == nil:
		return 0, errNoObject("user", "login", login)
	case u.id == was.requestee:
	case !t.requesteeble:
		return 0, fail(codeNoRequestee, "flags of the type '%s' cannot be asked of a user", t.name)
	case u.disabledText != "":
		return 0, fail(codeUser, "the account '%s' is disabled and cannot be asked", u.login)
	case !s.c.tx.seesBug(u, s.bug):
		return 0, fail(codeUser, "'%s' cannot be asked for '%s': bug %d is out of sight for this account", u.login, t.name, s.bug.id)
	case s.att != nil && s.att.private && !s.c.insider(u):
		return 0, fail(codeUser, "'%s' cannot be asked for '%s': attachment %d is private", u.login, t.name, s.att.id)
	case !s.c.tx.mayGrant(u, t):
		return 0, fail(codeUser, "'%s' cannot be asked for '%s': this account may not set it", u.login, t.name)
	}
	return u.id, nil
}

// setter is who sets the flag; a setter in the request is refused.
func (s *sheet) setter(was flag, t *flagType, status string, v any) (int, error) {
	if truth(v) {
		code := codeUser
		if s.c.server.mojolicious() {
			code = codeBadTarget
		}
		return 0, fail(code, "the setter of a flag cannot be given")
	}
	tx, u := s.c.tx, s.c.user
	if status != was.status && status != "X" && !(status == "?" && tx.mayRequest(u, t)) && !tx.mayGrant(u, t) {
		verb := map[string]string{"?": "request", "+": "grant", "-": "deny"}[status]
		return 0, fail(codeFlagDenied, "you may not %s '%s': this takes more rights", verb, t.name)
	}
	if status == "?" && was.status == "?" {
		return was.setter, nil
	}
	return u.id, nil
}

// cancelRequests drops pending flags, because the attachment becomes obsolete.
func (s *sheet) cancelRequests() {
	s.flags = slices.DeleteFunc(s.flags, func(f *flag) bool { return f.status == "?" })
}
