package compare

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// values compares two values of one place.
func (c *comparison) values(at place, shape *Shape, w, h *node) {
	if bytes.Equal(w.raw, h.raw) {
		return
	}
	if shape.entity {
		at.Place, at.Object, at.WantIn, at.HaveIn = at.Path, at.Pointer, w.raw, h.raw
	}
	class, kind := ClassValue, w.kind()
	switch other := h.kind(); {
	case kind != other && (kind == 'n' || other == 'n'):
		class = ClassNull
	case kind != other:
		class = ClassType
	case (kind == '{' || kind == '[') && at.segments > maxSegments:
		if c.digest(w.raw, shape) == c.digest(h.raw, shape) {
			return
		}
	case kind == '{':
		c.members(at, shape, w, h)
		return
	case kind == '[':
		c.elements(at, shape, w, h)
		return
	case bytes.Equal(canonical(w.raw), canonical(h.raw)):
		return
	case w.isContent():
		class = ClassDigest
	case kind == '0' && isInteger(w.raw) != isInteger(h.raw) && decimal(w.raw) == decimal(h.raw):
		class = ClassType
	default:
		if _, areTimes := timesApart(w.raw, h.raw); areTimes {
			class = ClassTime
		}
	}
	c.add(class, at, w.fragment(), h.fragment())
}

// members compares two objects, whose members are found by name. Names may be ids.
func (c *comparison) members(at place, shape *Shape, w, h *node) {
	wants, haves := c.children(w), c.children(h)
	for _, list := range [][]*node{wants, haves} {
		slices.SortStableFunc(list, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	}
	if shape.keyed {
		c.pairMapped(at.Path+"[*]", wants, haves, func(n *node) string { return n.name })
	}
	name := func(n *node) string { return cmp.Or(n.name, "\x00") } // an empty key is ignored
	pairUp("", wants, haves, name, name)
	c.pairs(shape, '{', wants, haves, func(n *node) place {
		if shape.keyed {
			return at.step("[*]", "["+idForPointer(n.name)+"]")
		}
		segment := memberSegment(n.name)
		return at.step(segment, segment)
	})
}

// elements compares two arrays. Elements that are equal are paired first, wherever they are: those that are written alike, and in
// arrays of things without ids all of them. Things with ids are paired by those. What is left is missing from a set or extra in
// it, and is otherwise compared in turn.
func (c *comparison) elements(at place, shape *Shape, w, h *node) {
	wants, haves, form := c.children(w), c.children(h), shape.array
	text := func(n *node) string { return string(n.raw) }
	pairUp("", wants, haves, text, text)
	key := func(*node) string { return "" }
	if form != byPosition && form != withoutOrder {
		key = c.idOf
		c.pairMapped(at.Path+"[id].id", wants, haves, key)
		pairUp("", wants, haves, key, key)
		if form != byID {
			pairUp("[name,type]", wants, haves, c.nameAndType, c.nameAndType)
		}
	}
	whole := func(n *node) string { return c.digest(n.raw, shape.inside('[', "")) }
	pairUp("", wants, haves, whole, whole)
	wantOrder, haveOrder := paired(wants, true), paired(haves, true)
	byRule := form == byPosition && c.rule(at.Path, func(r *rule) bool { return r.Type == Set }) != nil
	if byRule || form == withoutOrder {
		c.add(ClassSet, at, arrayOf(paired(wants, false)), arrayOf(paired(haves, false)))
	} else {
		c.rest(at, shape, wants, haves, key)
	}
	inOrder := slices.EqualFunc(wantOrder, haveOrder, func(w, h *node) bool { return w.pair == h })
	switch {
	case inOrder || shape.anyOrder():
	case form == byPosition:
		c.add(ClassOrder, at, w.raw, h.raw)
	default:
		c.add(ClassOrder, at, c.idsOf(wantOrder), c.idsOf(haveOrder))
	}
}

// rest pairs the elements of two arrays that have no pair yet, unless both have a key, and compares all pairs.
func (c *comparison) rest(at place, shape *Shape, wants, haves []*node, key func(*node) string) {
	any := func(*node) string { return "any" }
	anyWithoutKey := func(n *node) string {
		if key(n) != "" {
			return ""
		}
		return "any"
	}
	pairUp("", wants, haves, any, anyWithoutKey)
	pairUp("", wants, haves, anyWithoutKey, any)
	c.pairs(shape, '[', wants, haves, func(n *node) place {
		id := key(n)
		if id == "" && n.pair != nil {
			id = key(n.pair)
		}
		if id == "" {
			return at.step("[*]", "["+strconv.Itoa(n.position)+"]")
		}
		return at.step(cmp.Or(n.by, "[id]"), "["+idForPointer(id)+"]")
	})
}

// pairs compares the children that are paired, in the order of the reference, and then adds what only the candidate has. kind and
// shape are those of the parents.
func (c *comparison) pairs(shape *Shape, kind jsontext.Kind, wants, haves []*node, placeOf func(*node) place) {
	for _, w := range wants {
		switch {
		case w.pair == nil:
			c.add(ClassMissing, placeOf(w), w.fragment(), nil)
		case !bytes.Equal(w.raw, w.pair.raw) || w.name != w.pair.name:
			at := placeOf(w)
			c.add(ClassValue, at, quote(w.name), quote(w.pair.name)) // they differ where a rule maps ids
			c.values(at, shape.inside(kind, w.name), w, w.pair)
		}
	}
	for _, h := range haves {
		if h.pair == nil {
			c.add(ClassExtra, placeOf(h), nil, h.fragment())
		}
	}
}

// pairUp pairs those that have no pair yet and have equal keys, the first with the first. by is the segment of their path where it
// is not that of the id. An empty key is ignored.
func pairUp(by string, wants, haves []*node, wantKey, haveKey func(*node) string) {
	waiting := map[string][]*node{} // of haves, by key
	for _, h := range haves {
		if h.pair != nil {
			continue
		}
		if key := haveKey(h); key != "" {
			waiting[key] = append(waiting[key], h)
		}
	}
	for _, w := range wants {
		if w.pair != nil {
			continue
		}
		if key := wantKey(w); len(waiting[key]) > 0 {
			h := waiting[key][0]
			waiting[key] = waiting[key][1:]
			w.pair, h.pair, w.by = h, w, by
		}
	}
}

// pairMapped pairs by the ids that a rule of the type IDMap has for the candidate.
func (c *comparison) pairMapped(path string, wants, haves []*node, key func(*node) string) {
	if r := c.rule(path, func(r *rule) bool { return r.Type == IDMap }); r != nil {
		pairUp("", wants, haves, func(n *node) string { return r.mapped(key(n)) }, key)
	}
}

// paired gives those of a list that have a pair, or those that have none.
func paired(list []*node, isPaired bool) []*node {
	return slices.DeleteFunc(slices.Clone(list), func(n *node) bool { return (n.pair != nil) != isPaired })
}

// arrayOf is the JSON array of some values.
func arrayOf(nodes []*node) jsontext.Value {
	list := make([][]byte, len(nodes))
	for i, n := range nodes {
		list[i] = n.raw
	}
	return slices.Concat([]byte{'['}, bytes.Join(list, []byte{','}), []byte{']'})
}

// idsOf is the JSON array of the ids of elements.
func (r *reader) idsOf(nodes []*node) jsontext.Value {
	ids := make([]*node, len(nodes))
	for i, n := range nodes {
		ids[i] = r.member(n, "id")
	}
	return arrayOf(ids)
}

// idOf is the id of an element, empty when it has none; an id as text is the same as one as a number.
func (r *reader) idOf(n *node) string { return keyOf(r.member(n, "id")) }

func keyOf(n *node) string {
	if kind := n.kind(); kind != '0' && kind != '"' {
		return ""
	}
	return strings.TrimSuffix(string(withoutAddresses(unquoted(n.raw))), ".0")
}

// nameAndType is the key of a flag type without a known id.
func (r *reader) nameAndType(n *node) string {
	name := keyOf(r.member(n, "name"))
	if name == "" {
		return ""
	}
	return keyOf(r.member(n, "type")) + "\x00" + name
}

// idForPointer keeps of an id only what cannot be content: a number.
func idForPointer(id string) string {
	if isDigits(id) {
		return id
	}
	return "?"
}
