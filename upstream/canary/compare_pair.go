package canary

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// pairing finds for values of one side those of the other side that stand for the
// same thing. It works in passes, each by one key; what a pass has paired is out.
type pairing struct {
	want, have   *tree
	wants, haves []int32
	// pair is for each of wants the position in haves and the segment of its path, or -1.
	pair  []int
	by    []string
	taken []bool
}

func newPairing(want, have *tree, wants, haves []int32) *pairing {
	p := &pairing{
		want: want, have: have, wants: wants, haves: haves,
		pair: make([]int, len(wants)), by: make([]string, len(wants)), taken: make([]bool, len(haves)),
	}
	for i := range p.pair {
		p.pair[i] = -1
	}
	return p
}

// keyOf gives the key of a value at a position, empty when it has none.
type keyOf func(t *tree, i int32, position int) string

// pass pairs those that are left and have equal keys, the first with the first.
func (p *pairing) pass(segment string, want, have keyOf) {
	waiting := map[string][]int{}
	for position, i := range p.haves {
		if p.taken[position] {
			continue
		}
		if key := have(p.have, i, position); key != "" {
			waiting[key] = append(waiting[key], position)
		}
	}
	for position, i := range p.wants {
		if p.pair[position] >= 0 || len(waiting) == 0 {
			continue
		}
		key := want(p.want, i, position)
		if list := waiting[key]; key != "" && len(list) > 0 {
			p.pair[position], p.by[position] = list[0], segment
			p.taken[list[0]] = true
			waiting[key] = list[1:]
		}
	}
}

// withIDs tells whether any element has an id. Clients can leave that field out.
func (p *pairing) withIDs() bool {
	has := func(t *tree) func(int32) bool {
		return func(i int32) bool { return idKey(t, i, 0) != "" }
	}
	return slices.ContainsFunc(p.wants, has(p.want)) || slices.ContainsFunc(p.haves, has(p.have))
}

// left tells whether anything is still without its counterpart on both sides.
func (p *pairing) left() bool {
	wants, haves := 0, 0
	for _, at := range p.pair {
		if at < 0 {
			wants++
		}
	}
	for _, taken := range p.taken {
		if !taken {
			haves++
		}
	}
	return wants > 0 && haves > 0
}

// ordered tells whether the pairs stand in the same order on both sides.
func (p *pairing) ordered() bool {
	last := -1
	for _, at := range p.pair {
		if at < 0 {
			continue
		}
		if at < last {
			return false
		}
		last = at
	}
	return true
}

// idKey is the id of an element; an id as text is the same as one as a number.
func idKey(t *tree, i int32, _ int) string { return scalarKey(t, t.member(i, "id")) }

func scalarKey(t *tree, i int32) string {
	if i == 0 {
		return ""
	}
	switch t.nodes[i].kind {
	case '0':
		if isInteger(t.raw(i)) {
			return string(t.raw(i))
		}
		return decimalInteger(string(t.raw(i)))
	case '"':
		return string(t.says(i))
	}
	return ""
}

// decimalInteger writes a number such as 7.0 as an integer where it is one.
func decimalInteger(number string) string {
	if value, err := strconv.ParseFloat(number, 64); err == nil && value == float64(int64(value)) && value < 1<<53 && value > -1<<53 {
		return strconv.FormatInt(int64(value), 10)
	}
	return number
}

// exactKey is the id together with everything else.
func exactKey(t *tree, i int32, position int) string {
	id := idKey(t, i, position)
	if id == "" {
		return ""
	}
	return id + "\x00" + strconv.FormatUint(t.nodes[i].hash, 16)
}

// nameKey is the name and type of a flag type.
func nameKey(t *tree, i int32, _ int) string {
	name := scalarKey(t, t.member(i, "name"))
	if name == "" {
		return ""
	}
	return scalarKey(t, t.member(i, "type")) + "\x00" + name
}

// placeKey is the position of an element.
func placeKey(_ *tree, _ int32, position int) string { return strconv.Itoa(position) }

// namelessPlaceKey is the position of an element without id.
func namelessPlaceKey(t *tree, i int32, position int) string {
	if idKey(t, i, position) != "" {
		return ""
	}
	return strconv.Itoa(position)
}

// memberKey is the name of a member.
func memberKey(t *tree, i int32, _ int) string { return "." + string(t.name(i)) }

// mapped is a key as an idmap rule has it on the other side.
func mapped(r *rule, key keyOf) keyOf {
	return func(t *tree, i int32, position int) string {
		prefix, id := "", key(t, i, position)
		if id != "" && id[0] == '.' {
			prefix, id = ".", id[1:]
		}
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return ""
		}
		other, ok := r.mapped(number)
		if !ok {
			return ""
		}
		return prefix + strconv.FormatInt(other, 10)
	}
}

// idText is the id of an element for a pointer.
func idText(t *tree, i int32) string { return keyText(idKey(t, i, 0)) }

// keyText keeps of a key only what can be an id: anything else may be content.
func keyText(key string) string {
	if number, err := strconv.ParseInt(key, 10, 64); err == nil {
		return strconv.FormatInt(number, 10)
	}
	return "?"
}

// idList is the JSON array of the ids of elements, for a difference of order.
func idList(t *tree, list []int32) jsontext.Value {
	text := []byte{'['}
	for n, i := range list {
		if n > 0 {
			text = append(text, ',')
		}
		id := t.member(i, "id")
		if id == 0 {
			text = append(text, "null"...)
			continue
		}
		text = append(text, t.raw(id)...)
	}
	return append(text, ']')
}
