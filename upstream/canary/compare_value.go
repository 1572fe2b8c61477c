package canary

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep values are compared one by one. A tracker refuses deeper
// texts (wire-facts.md section 1); what lies deeper is equal as a whole or not.
const maxDepth = 512

// values compares two values of one place.
func (c *comparison) values(path *stablePath, shape *shape, w, h int32) {
	if c.identical(w, h) {
		return
	}
	if shape != nil && shape.entity {
		place, wantIn, haveIn := c.place, c.wantIn, c.haveIn
		c.place, c.wantIn, c.haveIn = path, c.want.raw(w), c.have.raw(h)
		defer func() { c.place, c.wantIn, c.haveIn = place, wantIn, haveIn }()
	}
	kind := c.want.kind(w)
	switch {
	case kind != c.have.kind(h):
		class := ClassType
		if kind == 'n' || c.have.kind(h) == 'n' {
			class = ClassNull
		}
		c.add(class, path, c.fragment(c.want, w, shape), c.fragment(c.have, h, shape))
	case len(c.steps) > maxDepth:
		if c.want.nodes[w].hash != c.have.nodes[h].hash {
			c.add(ClassValue, path, c.want.raw(w), c.have.raw(h))
		}
	case kind == '{' && shape != nil && shape.keyed:
		c.keyed(path, shape, w, h)
	case kind == '{':
		c.objects(path, shape, w, h)
	case kind == '[':
		c.arrays(path, shape, w, h)
	default:
		c.scalars(path, shape, w, h)
	}
}

// identical tells whether two values are the same byte for byte. It is asked of
// those with equal hashes only, so that no byte is read more often than it is deep.
func (c *comparison) identical(w, h int32) bool {
	return c.samePayloads && c.want.nodes[w].hash == c.have.nodes[h].hash && bytes.Equal(c.want.raw(w), c.have.raw(h))
}

// fragment is the text of a value for a difference, without content.
func (c *comparison) fragment(t *tree, i int32, shape *shape) jsontext.Value {
	_, aside := t.aside(i)
	if aside || shape != nil && shape.content && t.nodes[i].kind == '"' {
		return t.content(i).raw()
	}
	return t.raw(i)
}

// scalars compares two values of one kind that are neither objects nor arrays.
func (c *comparison) scalars(path *stablePath, shape *shape, w, h int32) {
	class, differ := c.scalarClass(shape, w, h)
	if differ {
		c.add(class, path, c.fragment(c.want, w, shape), c.fragment(c.have, h, shape))
	}
}

func (c *comparison) scalarClass(shape *shape, w, h int32) (Class, bool) {
	_, aside := c.want.aside(w)
	_, also := c.have.aside(h)
	if aside || also || shape != nil && shape.content && c.want.nodes[w].kind == '"' {
		return ClassDigest, c.want.content(w) != c.have.content(h)
	}
	want, have := c.want.says(w), c.have.says(h)
	switch {
	case bytes.Equal(want, have):
		return "", false
	case c.want.nodes[w].kind == '0':
		return numberClass(want, have)
	case c.want.nodes[w].kind == '"':
		if _, ok := times(want, have); ok {
			return ClassTime, true
		}
	}
	return ClassValue, true
}

func numberClass(want, have []byte) (Class, bool) {
	switch {
	case !sameNumber(want, have):
		return ClassValue, true
	default:
		return ClassType, isInteger(want) != isInteger(have)
	}
}

// objects compares members of the same name. Of names that occur more than once,
// the first is compared with the first, and so on.
func (c *comparison) objects(path *stablePath, shape *shape, w, h int32) {
	wants, haves := c.want.sorted(w), c.have.sorted(h)
	for len(wants) > 0 || len(haves) > 0 {
		order := 0
		switch {
		case len(wants) == 0:
			order = 1
		case len(haves) == 0:
			order = -1
		default:
			order = bytes.Compare(wants[0].name, haves[0].name)
		}
		switch {
		case order < 0:
			c.lone(ClassMissing, path, shape, wants[0])
			wants = wants[1:]
		case order > 0:
			c.lone(ClassExtra, path, shape, haves[0])
			haves = haves[1:]
		default:
			at := path.member(wants[0].name)
			c.enter(step{path: at, tree: c.want, id: wants[0].node, at: -1}, func() {
				c.values(at, shape.member(wants[0].name), wants[0].node, haves[0].node)
			})
			wants, haves = wants[1:], haves[1:]
		}
	}
}

// member is a member of an object by name.
type member struct {
	name []byte
	node int32
}

// sorted gives the members of an object by name, equal names in order.
func (t *tree) sorted(i int32) []member {
	var list []member
	for child := t.nodes[i].first; child != 0; child = t.nodes[child].next {
		list = append(list, member{name: t.name(child), node: child})
	}
	slices.SortStableFunc(list, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	return list
}

// lone adds a member that only one side has.
func (c *comparison) lone(class Class, path *stablePath, shape *shape, m member) {
	at := path.member(m.name)
	c.alone(class, step{path: at, tree: c.sideOf(class), id: m.node, at: -1}, shape.member(m.name), m.node)
}

// sideOf is the side that has what the other has not.
func (c *comparison) sideOf(class Class) *tree {
	if class == ClassMissing {
		return c.want
	}
	return c.have
}

// alone adds a value that only one side has.
func (c *comparison) alone(class Class, s step, shape *shape, i int32) {
	value := c.fragment(c.sideOf(class), i, shape)
	want, have := value, jsontext.Value(nil)
	if class == ClassExtra {
		want, have = nil, value
	}
	c.enter(s, func() { c.add(class, s.path, want, have) })
}

// enter does something one step further.
func (c *comparison) enter(s step, do func()) {
	c.steps = append(c.steps, s)
	do()
	c.steps = c.steps[:len(c.steps)-1]
}
