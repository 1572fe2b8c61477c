package tracker

import (
	"slices"
	"time"
)

// addGroups adds groups whose ids are their places in the list; an empty name leaves a place out.
func (d *data) addGroups(names []string) {
	for id, name := range names {
		if name != "" {
			d.groups.add(id, &group{id: id, name: name, description: "members of " + name})
		}
	}
}

// addUser adds a user with an API key. The login is completed by the domain.
func (d *data) addUser(id int, u *user, keyName, domain string) {
	u.id, u.login, u.keys = id, u.login+domain, []apiKey{{text: key(keyName)}}
	d.users.add(id, u)
}

// addProducts adds products and components with ids in their order.
func (d *data) addProducts(products []product, components []component) {
	for i := range products {
		p := &products[i]
		p.id = i + 1
		if p.description == "" {
			p.description = "Product " + p.name
		}
		d.products.add(p.id, p)
	}
	for i := range components {
		c := &components[i]
		c.id = i + 1
		if c.description == "" {
			c.description = "Component " + c.name
		}
		d.components.add(c.id, c)
	}
}

// addBug adds a bug with its first comment. It is in the group of its product.
func (d *data) addBug(b *bug, at time.Time, said string) {
	b.id, b.product = d.bugs.last+1, d.components.rows[b.component].product
	if p := d.products.rows[b.product]; p.group != 0 {
		b.groups = []int{p.group}
	}
	b.setDefaults()
	b.created, b.changed = at, at
	d.lastComment++
	b.comments = []comment{{id: d.lastComment, author: b.reporter, at: at, text: said}}
	d.bugs.add(b.id, b)
}

// addFlagTypes adds flag types with ids in their order.
func (d *data) addFlagTypes(types []flagType) {
	for _, f := range types {
		f.id = d.flagTypes.last + 1
		d.flagTypes.add(f.id, &f)
	}
}

// addAttachment adds an attachment with its flags and its comment. Flags without an id get the next one.
func (d *data) addAttachment(a *attachment, at time.Time) {
	a.id, a.created, a.changed = d.attachments.last+1, at, at
	a.bug += d.offset
	for i := range a.flags {
		f := &a.flags[i]
		f.flagType += d.offset
		if f.id == 0 {
			f.id = d.lastFlag + 1
		}
		d.lastFlag = max(d.lastFlag, f.id)
		f.created, f.changed = at, at
	}
	b := d.bugs.rows[a.bug]
	b.attachments = append(b.attachments, a.id)
	d.lastComment++
	b.comments = append(slices.Clone(b.comments), comment{id: d.lastComment, author: a.creator, at: at, kind: attachmentCreated,
		attachment: a.id, private: a.private})
	d.attachments.add(a.id, a)
}
