package mapping

import (
	"bytes"
	"unicode/utf16"
)

// namesLinear is the number of members up to which an object's names are compared one by one: most objects have fewer.
const namesLinear = 16

// splitNames is the stack of open arrays and objects, with the member names of each object.
type splitNames struct {
	levels []splitLevel
	ends   []int  // where each name of the open objects ends in text
	text   []byte // these names, decoded
}

// splitLevel is one open array or object.
type splitLevel struct {
	object bool
	first  int                 // its first name in ends
	many   map[string]struct{} // its names, once there are more than namesLinear
}

// reset forgets everything, and gives back memory that only an unusual document needs.
func (n *splitNames) reset() {
	clear(n.levels)
	n.levels, n.ends, n.text = n.levels[:0], n.ends[:0], n.text[:0]
	if cap(n.text) > 64<<10 || cap(n.ends) > 4<<10 {
		n.ends, n.text = nil, nil
	}
}

func (n *splitNames) depth() int     { return len(n.levels) }
func (n *splitNames) inObject() bool { return n.levels[len(n.levels)-1].object }

// enter opens an array or object.
func (n *splitNames) enter(object bool) {
	n.levels = append(n.levels, splitLevel{object: object, first: len(n.ends)})
}

// leave closes what was opened last and forgets its names.
func (n *splitNames) leave() {
	top := len(n.levels) - 1
	first := n.levels[top].first
	n.text, n.ends = n.text[:n.begin(first)], n.ends[:first]
	n.levels[top] = splitLevel{}
	n.levels = n.levels[:top]
}

// begin is where the i-th name begins in text.
func (n *splitNames) begin(i int) int {
	if i == 0 {
		return 0
	}
	return n.ends[i-1]
}

// add decodes a member name of the innermost object, and tells whether it is the first of its kind there. The name is valid
// until the next call.
func (n *splitNames) add(written []byte) (name []byte, fresh bool) {
	at := len(n.text)
	n.text = appendUnescaped(n.text, written)
	name = n.text[at:]
	level := &n.levels[len(n.levels)-1]
	if level.many == nil && len(n.ends)-level.first == namesLinear {
		n.index(level)
	}
	if level.many != nil {
		_, known := level.many[string(name)]
		level.many[string(name)] = struct{}{}
		n.text = n.text[:at]
		return name, !known
	}
	for i := level.first; i < len(n.ends); i++ {
		if bytes.Equal(n.text[n.begin(i):n.ends[i]], name) {
			return name, false
		}
	}
	n.ends = append(n.ends, len(n.text))
	return name, true
}

// index moves the names of a level into a map.
func (n *splitNames) index(level *splitLevel) {
	level.many = make(map[string]struct{}, 4*namesLinear)
	for i := level.first; i < len(n.ends); i++ {
		level.many[string(n.text[n.begin(i):n.ends[i]])] = struct{}{}
	}
}

// appendUnescaped appends what the inside of a valid JSON string means.
func appendUnescaped(dst, written []byte) []byte {
	for {
		i := bytes.IndexByte(written, '\\')
		if i < 0 {
			return append(dst, written...)
		}
		dst = append(dst, written[:i]...)
		r, width := unescape(written[i:])
		dst = append(dst, string(r)...)
		written = written[i+width:]
	}
}

// unescape reads the valid escape at the start of p.
func unescape(p []byte) (r rune, width int) {
	if p[1] != 'u' {
		return simpleEscapes[p[1]], 2
	}
	r, _ = hexEscape(p)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, _ := hexEscape(p[6:])
	return utf16.DecodeRune(r, low), 12
}
