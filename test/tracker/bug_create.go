package tracker

// opBugCreate has the status 200, unlike the other creates: Bugzilla does not look at the name under which it notes 201.
var opBugCreate = operation{name: "bug.create", write: true, do: (*call).bugCreate}

// bugCreate files a bug. Fields that the reference tracker does not keep are ignored.
func (c *call) bugCreate() (any, error) {
	required := []string{"product", "component", "summary", "version"}
	if c.server.harmony() {
		required = append(required, "type")
	}
	for _, name := range required {
		if v := c.params[name]; !truth(trim(text(v))) && (name != "type" || !truth(c.params["bug_type"])) {
			return nil, fail(codeParamRequired, "filing a bug needs the parameter '%s'", name)
		}
	}
	p, err := c.product(c.params["product"])
	if err != nil {
		return nil, err
	}
	comp, err := c.component(p, c.params["component"])
	if err != nil {
		return nil, err
	}
	if p.closed {
		return nil, errNoProduct(p.name)
	}
	b := &bug{product: p.id, component: comp.id, reporter: c.user.id, assignee: c.user.id, created: c.tx.now, changed: c.tx.now}
	b.setDefaults()
	if p.group != 0 {
		b.groups = []int{p.group}
	}
	if alias := c.params["alias"]; truth(alias) {
		b.aliases = words(alias, true)
	}
	b.id = c.tx.bugs.next()
	c.tx.bugs.put(b.id, b)
	x := &bugChange{c: c, b: b, changes: object{}}
	if v := c.params["cc"]; truth(v) {
		c.params["cc"] = object{"add": v}
	}
	for _, step := range []func() error{x.people, x.plain, x.flags} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.written = append(c.written, b.id)
	return object{"id": b.id}, c.addComment(b, commentOf(c.params["description"]))
}
