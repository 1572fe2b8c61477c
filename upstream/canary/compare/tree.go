package compare

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNodes bounds what comparing two bodies may cost, at about 130 bytes for each value.
const maxNodes = 1 << 18

// node is one value of a body. Its children are read when they are asked for, so that values which are equal byte for byte are
// never taken apart.
type node struct {
	name     string // of a member, empty for any other value
	position int    // among the elements or members of its parent
	raw      jsontext.Value
	children []*node // nil before they are read

	// pair is the value of the other body that this one is compared with, by the path segment by which it was found.
	pair *node
	by   string
}

// lenient takes bytes that are not UTF-8 as they are, and a name that an object has twice as two members.
var lenient = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// parse gives the value of a text, and nil for what is not JSON.
func parse(text jsontext.Value) *node {
	if !text.IsValid(lenient...) {
		return nil
	}
	return &node{raw: bytes.TrimSpace(text)}
}

// kind is the JSON type, f for both booleans.
func (n *node) kind() jsontext.Kind {
	if kind := n.raw.Kind(); kind != 't' {
		return kind
	}
	return 'f'
}

// isContent reports whether the value is the content of an attachment.
func (n *node) isContent() bool { return n.name == "data" && n.kind() == '"' }

// fragment is the text of a value for a difference, without content.
func (n *node) fragment() jsontext.Value {
	if n.isContent() {
		return contentOf(n.raw)
	}
	return n.raw
}

// reader takes values apart. It is used by one goroutine at a time.
type reader struct {
	decoder jsontext.Decoder
	nodes   int // that were made
}

// begin lets the decoder read a text that is known to be valid.
func (r *reader) begin(text []byte) {
	r.decoder.Reset(bytes.NewBuffer(text), lenient...)
}

// value reads the next value.
func (r *reader) value() jsontext.Value {
	raw, _ := r.decoder.ReadValue() // the text is valid
	return raw
}

// each reads the next object or array. It has visit read each value, of which it passes the name, and returns how that ends.
func (r *reader) each(visit func(name string)) (end jsontext.Kind) {
	begin, _ := r.decoder.ReadToken()
	for {
		switch end = r.decoder.PeekKind(); {
		case end == '}' || end == ']' || end == jsontext.KindInvalid:
			_, _ = r.decoder.ReadToken()
			return end
		case begin.Kind() == '{':
			visit(string(unquoted(r.value())))
		default:
			visit("")
		}
	}
}

// children gives the members or elements of a value. When there are too many nodes, the list is not complete.
func (r *reader) children(n *node) []*node {
	kind := n.kind()
	if n.children != nil || kind != '{' && kind != '[' {
		return n.children
	}
	n.children = []*node{}
	r.begin(n.raw)
	r.each(func(name string) {
		raw := r.value()
		if r.nodes < maxNodes {
			r.nodes++
			n.children = append(n.children, &node{name: name, position: len(n.children), raw: raw})
		}
	})
	return n.children
}

// member finds a member; it gives null when there is none.
func (r *reader) member(n *node, name string) *node {
	for _, child := range r.children(n) {
		if child.name == name {
			return child
		}
	}
	return &node{raw: jsontext.Value("null")}
}

// digest gives a text that tells valid texts apart. It does not depend on the order of members nor on the order of elements where
// the shape says that it means nothing, nor on white space, the spelling of characters and numbers, or addresses of memory.
// Trackers order members at random (tracker-behaviour.md section 2). It takes one pass, without nodes.
func (r *reader) digest(text []byte, shape *Shape) string {
	r.begin(text)
	return r.nextDigest(shape)
}

// nextDigest reads the next value.
func (r *reader) nextDigest(shape *Shape) string {
	kind := r.decoder.PeekKind()
	if kind != '{' && kind != '[' {
		return hash(string(canonical(r.value())))
	}
	var parts []string
	r.each(func(name string) { parts = append(parts, hash(name+r.nextDigest(shape.inside(kind, name)))) })
	if kind == '{' || shape.anyOrder() {
		slices.Sort(parts)
	}
	return hash(string(byte(kind)) + strings.Join(parts, ""))
}

// hash is the SHA-256 of a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}
