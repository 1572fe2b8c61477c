package tracker

import "strings"

var (
	opBugGet    = operation{name: "bug.get", rate: true, do: (*call).bugGet}
	opBugSearch = operation{name: "bug.search", do: (*call).bugSearch}
	opBugUpdate = operation{name: "bug.update", write: true, do: (*call).bugUpdate}
	opHistory   = operation{name: "bug.history", do: (*call).history}
)

// bugGet reads bugs by id or alias.
func (c *call) bugGet() (any, error) {
	ids, err := c.idList("ids")
	if err != nil {
		return nil, err
	}
	bugs, faults := []any{}, []any{}
	for _, id := range ids {
		b, err := c.bug(id)
		if f := asFailure(err); f != nil && truth(c.params["permissive"]) {
			faults = append(faults, object{"id": text(id), "faultCode": f.code, "faultString": f.message})
			continue
		} else if err != nil {
			return nil, err
		}
		bugs = append(bugs, c.filter("", c.bugObject(b)))
	}
	return object{"bugs": bugs, "faults": faults}, nil
}

// bugSearch finds bugs by their fields.
func (c *call) bugSearch() (any, error) {
	bugs := []any{}
	for _, b := range c.tx.bugs.all() {
		if o := c.bugObject(b); c.tx.seesBug(c.user, b) && c.found(b, o) {
			bugs = append(bugs, c.filter("", o))
		}
	}
	return object{"bugs": c.window(bugs)}, nil
}

// words gives the values of a search parameter; ids may stand in one value with commas.
func words(v any, split bool) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, e := range list {
		if split {
			out = append(out, strings.FieldsFunc(text(e), func(r rune) bool { return r == ',' || r == ' ' })...)
		} else {
			out = append(out, text(e))
		}
	}
	return out
}

// window applies limit and offset.
func (c *call) window(list []any) []any {
	if n, ok := natural(text(c.params["offset"])); ok {
		list = list[min(n, len(list)):]
	}
	if n, ok := natural(text(c.params["limit"])); ok && n > 0 {
		list = list[:min(n, len(list))]
	}
	return list
}

func (c *call) bugObject(b *bug) object {
	o := object{
		"id": b.id, "alias": texts(b.aliases), "is_open": b.open(), "product": c.tx.products.get(b.product).name,
		"component": c.tx.components.get(b.component).name, "classification": "Unclassified",
		"creator": c.email(b.reporter), "creator_detail": c.userDetail(b.reporter), "assigned_to": c.email(b.assignee),
		"assigned_to_detail": c.userDetail(b.assignee), "qa_contact": "", "deadline": nil, "dupe_of": b.dupeOf,
		"cc": listOf(b.cc, c.email), "cc_detail": listOf(b.cc, c.userDetail), "groups": c.groupNames(b.groups), "keywords": []any{}, "see_also": []any{},
		"depends_on": []any{}, "blocks": []any{}, "flags": c.flagObjects(b.flags), "creation_time": stamp(b.created),
		"last_change_time": stamp(b.changed), "is_confirmed": b.status != "UNCONFIRMED", "is_cc_accessible": true, "is_creator_accessible": true,
	}
	for name, v := range b.fields() {
		o[name] = *v
	}
	return o
}

func texts(list []string) []any { return listOf(list, strings.Clone) }

// listOf applies a function to each item.
func listOf[T, R any](in []T, f func(T) R) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

func (c *call) userDetail(id int) object {
	o := object{"id": id, "name": c.email(id), "email": c.email(id), "real_name": c.tx.users.get(id).realName}
	if c.server.mojolicious() {
		o["nick"], _, _ = strings.Cut(c.email(id), "@")
	}
	return o
}

func (c *call) groupNames(ids []int) []any {
	return listOf(ids, func(id int) string { return c.tx.groups.get(id).name })
}

// history is kept of nothing; a bug that exists has an empty one.
func (c *call) history() (any, error) {
	bugs, err := c.bugs()
	return object{"bugs": listOf(bugs, func(b *bug) object {
		return object{"id": b.id, "alias": texts(b.aliases), "history": []any{}}
	})}, err
}
