package canary

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// arrays compares two arrays in the way of their shape.
func (c *comparison) arrays(path *stablePath, shape *shape, w, h int32) {
	form := byPosition
	if shape != nil {
		form = shape.array
	}
	if form == byPosition && c.rules.first(c.operation, path, Set) != nil {
		c.sets(path, w, h, true)
		return
	}
	switch form {
	case byPosition:
		c.sequence(path, shape.element(), w, h)
	case withoutOrder:
		c.sets(path, w, h, false)
	default:
		c.identified(path, shape, w, h)
	}
}

// sequence compares by position what is left between a common beginning and a
// common end, so that one element more or less is one difference. Of scalars,
// what both have counts for their order only, wherever it stands.
func (c *comparison) sequence(path *stablePath, shape *shape, w, h int32) {
	wants, haves := c.want.children(w), c.have.children(h)
	head, tail := c.common(wants, haves)
	middle, other := wants[head:len(wants)-tail], haves[head:len(haves)-tail]
	moved := len(middle) > 0 && c.permuted(middle, other)
	at := path.segment("[*]")
	switch {
	case moved:
	case c.want.areScalars(middle) && c.have.areScalars(other):
		missing, extra := c.lacking(middle, other)
		c.byPosition(at, shape, sideBySide{missing, extra, wants, haves})
		moved = !c.sameOrder(without(middle, missing), without(other, extra))
	default:
		c.byPosition(at, shape, sideBySide{middle, other, wants, haves})
	}
	if moved {
		c.add(ClassOrder, path, c.want.raw(w), c.have.raw(h))
		return
	}
	// Equal hashes are equal values but for a chance of one in 2^64, which
	// must not hide anything either.
	for n := range head + tail {
		i, k := n, n
		if n >= head {
			i, k = len(wants)-tail+n-head, len(haves)-tail+n-head
		}
		c.enter(step{path: at, at: i}, func() { c.values(at, shape, wants[i], haves[k]) })
	}
}

// sideBySide are elements of two arrays, the first to be compared with the first.
type sideBySide struct{ some, others, wants, haves []int32 }

func (c *comparison) byPosition(at *stablePath, shape *shape, list sideBySide) {
	for n := range max(len(list.some), len(list.others)) {
		switch {
		case n >= len(list.others):
			c.alone(ClassMissing, step{path: at, at: positionOf(list.wants, list.some[n])}, shape, list.some[n])
		case n >= len(list.some):
			c.alone(ClassExtra, step{path: at, at: positionOf(list.haves, list.others[n])}, shape, list.others[n])
		default:
			s := step{path: at, at: positionOf(list.wants, list.some[n])}
			c.enter(s, func() { c.values(at, shape, list.some[n], list.others[n]) })
		}
	}
}

// positionOf finds an element in its array; nodes are in the order of the text.
func positionOf(elements []int32, i int32) int {
	at, _ := slices.BinarySearch(elements, i)
	return at
}

// areScalars tells whether all values are neither objects nor arrays.
func (t *tree) areScalars(list []int32) bool {
	return !slices.ContainsFunc(list, func(i int32) bool { return t.nodes[i].kind == '{' || t.nodes[i].kind == '[' })
}

// common counts the elements at the beginning and at the end that are equal.
func (c *comparison) common(wants, haves []int32) (head, tail int) {
	least := min(len(wants), len(haves))
	for head < least && c.alike(wants[head], haves[head]) {
		head++
	}
	for tail < least-head && c.alike(wants[len(wants)-1-tail], haves[len(haves)-1-tail]) {
		tail++
	}
	return head, tail
}

func (c *comparison) alike(w, h int32) bool { return c.want.nodes[w].hash == c.have.nodes[h].hash }

// permuted tells whether two lists have the same elements in another order.
func (c *comparison) permuted(wants, haves []int32) bool {
	if len(wants) != len(haves) {
		return false
	}
	missing, extra := c.lacking(wants, haves)
	return len(missing) == 0 && len(extra) == 0
}

// lacking gives what only one of two lists has, counting what is in it more than once.
func (c *comparison) lacking(wants, haves []int32) (missing, extra []int32) {
	count := map[uint64]int{}
	for _, h := range haves {
		count[c.have.nodes[h].hash]++
	}
	for _, w := range wants {
		if hash := c.want.nodes[w].hash; count[hash] > 0 {
			count[hash]--
		} else {
			missing = append(missing, w)
		}
	}
	for _, h := range slices.Backward(haves) {
		if hash := c.have.nodes[h].hash; count[hash] > 0 {
			count[hash]--
			extra = append(extra, h)
		}
	}
	slices.Reverse(extra)
	return missing, extra
}

// sets compares two arrays without order. By a rule, the other order is said.
func (c *comparison) sets(path *stablePath, w, h int32, byRule bool) {
	wants, haves := c.want.children(w), c.have.children(h)
	missing, extra := c.lacking(wants, haves)
	if len(missing) > 0 || len(extra) > 0 {
		c.add(ClassSet, path, c.want.list(missing), c.have.list(extra))
	}
	if byRule && !c.sameOrder(without(wants, missing), without(haves, extra)) {
		c.add(ClassOrder, path, c.want.raw(w), c.have.raw(h))
	}
}

func (c *comparison) sameOrder(wants, haves []int32) bool {
	return slices.EqualFunc(wants, haves, c.alike)
}

// without gives a list without some of its elements, which stand in the same order.
func without(list, gone []int32) []int32 {
	var rest []int32
	for _, i := range list {
		if len(gone) > 0 && gone[0] == i {
			gone = gone[1:]
			continue
		}
		rest = append(rest, i)
	}
	return rest
}

// list is the JSON array of some values.
func (t *tree) list(nodes []int32) jsontext.Value {
	text := []byte{'['}
	for n, i := range nodes {
		if n > 0 {
			text = append(text, ',')
		}
		text = append(text, t.raw(i)...)
	}
	return append(text, ']')
}

// identified compares two arrays of things with ids. Elements that have the same
// id as others of their array are still compared one by one.
func (c *comparison) identified(path *stablePath, shape *shape, w, h int32) {
	p := newPairing(c.want, c.have, c.want.children(w), c.have.children(h))
	if !p.withIDs() {
		c.sequence(path, shape.element(), w, h)
		return
	}
	c.pairElements(p, path, shape.array)
	c.paired(p, path, shape.element())
	if shape.array != inAnyOrder && !p.ordered() {
		c.add(ClassOrder, path, idList(c.want, p.inOrder(true)), idList(c.have, p.inOrder(false)))
	}
}

func (c *comparison) pairElements(p *pairing, path *stablePath, form arrayForm) {
	p.pass("[id]", exactKey, exactKey)
	if r := c.rules.first(c.operation, path.segment("[id]").member([]byte("id")), IDMap); r != nil {
		p.pass("[id]", mapped(r, idKey), idKey)
	}
	p.pass("[id]", idKey, idKey)
	if p.left() && form != byID {
		p.pass("[name,type]", nameKey, nameKey)
	}
	if p.left() {
		p.pass("[id]", placeKey, namelessPlaceKey)
		p.pass("[id]", namelessPlaceKey, placeKey)
	}
}

// paired compares pairs, in the order of the answering side, and then adds what is alone.
func (c *comparison) paired(p *pairing, path *stablePath, shape *shape) {
	for n, w := range p.wants {
		s := step{path: path.segment(segmentOf(c.want, w)), tree: c.want, id: w, at: n}
		if p.pair[n] < 0 {
			c.alone(ClassMissing, s, shape, w)
			continue
		}
		s.path = path.segment(p.by[n])
		c.enter(s, func() { c.values(s.path, shape, w, p.haves[p.pair[n]]) })
	}
	for n, h := range p.haves {
		if !p.taken[n] {
			s := step{path: path.segment(segmentOf(c.have, h)), tree: c.have, id: h, at: n}
			c.alone(ClassExtra, s, shape, h)
		}
	}
}

func segmentOf(t *tree, i int32) string {
	if idKey(t, i, 0) == "" {
		return "[*]"
	}
	return "[id]"
}

// inOrder gives the paired elements of one side in their order there.
func (p *pairing) inOrder(answered bool) []int32 {
	var list []int32
	if answered {
		for n, at := range p.pair {
			if at >= 0 {
				list = append(list, p.wants[n])
			}
		}
		return list
	}
	for n, taken := range p.taken {
		if taken {
			list = append(list, p.haves[n])
		}
	}
	return list
}

// keyed compares two objects with ids as names.
func (c *comparison) keyed(path *stablePath, shape *shape, w, h int32) {
	p := newPairing(c.want, c.have, nodesOf(c.want.sorted(w)), nodesOf(c.have.sorted(h)))
	at := path.segment("[*]")
	if r := c.rules.first(c.operation, at, IDMap); r != nil {
		p.pass("[*]", mapped(r, memberKey), memberKey)
	}
	p.pass("[*]", memberKey, memberKey)
	for n, i := range p.wants {
		s := step{path: at, tree: c.want, id: i, at: -1}
		if p.pair[n] < 0 {
			c.alone(ClassMissing, s, shape.elements, i)
			continue
		}
		c.enter(s, func() { c.keyedPair(at, shape.elements, i, p.haves[p.pair[n]]) })
	}
	for n, i := range p.haves {
		if !p.taken[n] {
			c.alone(ClassExtra, step{path: at, tree: c.have, id: i, at: -1}, shape.elements, i)
		}
	}
}

// keyedPair compares two members whose ids may differ by a rule.
func (c *comparison) keyedPair(at *stablePath, shape *shape, w, h int32) {
	if want, have := c.want.name(w), c.have.name(h); string(want) != string(have) {
		c.add(ClassValue, at, quote(string(want)), quote(string(have)))
	}
	c.values(at, shape, w, h)
}

func nodesOf(members []member) []int32 {
	list := make([]int32, len(members))
	for n := range members {
		list[n] = members[n].node
	}
	return list
}
