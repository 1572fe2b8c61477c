package tracker

import (
	"cmp"
	"slices"
	"strings"
)

// bugUpdate changes bugs: their place, people, plain fields and flags, and adds a comment. It is what "outside" changes need, and the trap that
// PUT /rest/bug/attachment falls into with ids in its body (tracker-behaviour.md section 1, Paths and methods).
func (c *call) bugUpdate() (any, error) {
	bugs, err := c.bugs()
	if err != nil {
		return nil, err
	}
	result := []any{}
	for _, b := range bugs {
		row, err := c.changeBug(b)
		if err != nil {
			return nil, err
		}
		result = append(result, row)
	}
	return object{"bugs": result}, nil
}

// bugChange collects what one update changes.
type bugChange struct {
	c       *call
	b       *bug
	changes object
}

func (x *bugChange) put(name, removed, added string) { into(x.changes)(name, removed, added) }

// into returns a function that notes what a field was and is, if these differ.
func into(changes object) func(name string, removed, added any) {
	return func(name string, removed, added any) {
		if removed != added {
			changes[name] = object{"removed": removed, "added": added}
		}
	}
}

// changeBug makes the changes of one update. All who see a bug may write a comment; the rest takes the group editbugs or a role on the bug.
func (c *call) changeBug(old *bug) (object, error) {
	x := &bugChange{c: c, b: c.tx.bugs.edit(old.id), changes: object{}}
	for _, step := range []func() error{x.move, x.people, x.plain, x.flags} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if len(x.changes) > 0 {
		if !c.tx.memberNamed(c.user, editBugsGroup) && c.user.id != old.reporter && c.user.id != old.assignee {
			return nil, fail(115, "you may not change bug %d", old.id)
		}
		x.b.changed = c.tx.now
	}
	if v := c.params["comment"]; v != nil {
		if err := c.addComment(x.b, commentOf(v)); err != nil {
			return nil, err
		}
	}
	c.written = append(c.written, x.b.id)
	var alias any = texts(x.b.aliases)
	if x.c.server.mojolicious() {
		alias = strings.Join(x.b.aliases, ",")
	}
	return object{"id": x.b.id, "alias": alias, "changes": x.changes, "last_change_time": stamp(x.b.changed)}, nil
}

// commentOf reads a comment given as text or as an object with is_private and body, which may be called comment.
func commentOf(v any) comment {
	if o, ok := v.(object); ok {
		return comment{text: cmp.Or(text(o["comment"]), text(o["body"])), private: truth(o["is_private"])}
	}
	return comment{text: text(v)}
}

// move puts the bug into another product or component, with what that does to its groups and its attachments' flags.
func (x *bugChange) move() error {
	c, b := x.c, x.b
	from, was := c.tx.products.get(b.product), c.tx.components.get(b.component)
	to, comp := from, was
	if v := c.params["product"]; v != nil {
		p, err := c.product(v)
		if err != nil {
			return err
		}
		to = p
	}
	if v := c.params["component"]; v != nil {
		found, err := c.component(to, v)
		if err != nil {
			return err
		}
		comp = found
	}
	if comp.product != to.id {
		return fail(codeParamRequired, "moving a bug to another product needs a component")
	}
	if to == from && comp == was {
		return nil
	}
	b.product, b.component = to.id, comp.id
	x.put("product", from.name, to.name)
	x.put("component", was.name, comp.name)
	x.regroup(from, to)
	x.put("flagtypes.name", shown(c.settleBug(b)), "")
	return nil
}

// regroup takes the bug out of the old product's group and puts it into the new one's.
func (x *bugChange) regroup(from, to *product) {
	if from.group == to.group {
		return
	}
	var removed, added string
	if i := slices.Index(x.b.groups, from.group); from.group != 0 && i >= 0 {
		x.b.groups = slices.Delete(slices.Clone(x.b.groups), i, i+1)
		removed = x.c.tx.groups.get(from.group).name
	}
	if to.group != 0 && !slices.Contains(x.b.groups, to.group) {
		x.b.groups = append(slices.Clone(x.b.groups), to.group)
		added = x.c.tx.groups.get(to.group).name
	}
	x.put("groups", removed, added)
}

// people changes the CC list and the assignee.
func (x *bugChange) people() error {
	if cc, ok := x.c.params["cc"].(object); ok {
		if err := x.changeCC(cc); err != nil {
			return err
		}
	}
	if v := x.c.params["assigned_to"]; v != nil {
		u := x.c.tx.userNamed(trim(text(v)))
		if u == nil {
			return errNoObject("user", "login", v)
		}
		x.put("assigned_to", x.c.tx.users.get(x.b.assignee).login, u.login)
		x.b.assignee = u.id
	}
	return nil
}

func (x *bugChange) changeCC(cc object) error {
	var removed, added []string
	x.b.cc = slices.Clone(x.b.cc)
	for _, name := range words(cc["add"], false) {
		u := x.c.tx.userNamed(name)
		if u == nil && name != "" {
			return errNoObject("user", "login", name)
		}
		if u != nil && !slices.Contains(x.b.cc, u.id) {
			x.b.cc = append(x.b.cc, u.id)
			added = append(added, u.login)
		}
	}
	for _, name := range words(cc["remove"], false) {
		if u := x.c.tx.userNamed(name); u != nil && slices.Contains(x.b.cc, u.id) {
			x.b.cc = slices.DeleteFunc(x.b.cc, func(id int) bool { return id == u.id })
			removed = append(removed, u.login)
		}
	}
	x.put("cc", strings.Join(removed, ", "), strings.Join(added, ", "))
	return nil
}
