package canary

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// maxNodes bounds what comparing one body may cost: about 50 bytes each. Documents
// that mapping.Split took apart have at most a quarter of it.
const maxNodes = 1 << 20

// tree is a JSON text taken apart once. Nodes are in the order of the text, so a
// parent comes before its children, and node 0 is the whole.
type tree struct {
	text     []byte
	nodes    []node
	payloads []Payload
	seed     maphash.Seed
}

// node is one value. Its name and its children are found by position: bodies may
// be long, and a copy of every name would be as long again.
type node struct {
	from, to         int32 // of the value in the text
	nameFrom, nameTo int32 // of the member's name with quotes; equal where there is none
	first, next      int32 // child and sibling; 0 where there is none
	kind             jsontext.Kind
	hash             uint64
}

// newTree takes a text apart. It says false for what is no JSON text, or has more
// values than are compared one by one. Names that occur twice and bytes that are
// no UTF-8 are taken as they are, since nothing may hide behind them.
func newTree(text []byte, payloads []Payload, seed maphash.Seed) (*tree, bool) {
	if len(text) > math.MaxInt32 {
		return nil, false
	}
	t := &tree{text: text, payloads: payloads, seed: seed, nodes: make([]node, 0, min(len(text)/16+8, 1<<16))}
	reader := treeReader{tree: t, decoder: jsontext.NewDecoder(bytes.NewBuffer(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	if !reader.run() {
		return nil, false
	}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		t.nodes[i].hash = t.hashOf(int32(i))
	}
	return t, true
}

// treeReader holds what is open on a stack of its own, so that no text can exhaust
// the goroutine's.
type treeReader struct {
	tree             *tree
	decoder          *jsontext.Decoder
	open             []openNode
	nameFrom, nameTo int32
}

type openNode struct{ node, last int32 }

func (r *treeReader) run() bool {
	for {
		kind := r.decoder.PeekKind()
		if len(r.open) == 0 && len(r.tree.nodes) > 0 {
			_, err := r.decoder.ReadToken()
			return errors.Is(err, io.EOF)
		}
		if len(r.tree.nodes) == maxNodes || !r.step(kind) {
			return false
		}
	}
}

func (r *treeReader) step(kind jsontext.Kind) bool {
	switch {
	case kind == '}' || kind == ']':
		if _, err := r.decoder.ReadToken(); err != nil || len(r.open) == 0 {
			return false
		}
		r.tree.nodes[r.open[len(r.open)-1].node].to = r.offset()
		r.open = r.open[:len(r.open)-1]
		return true
	case kind == '{' || kind == '[':
		_, err := r.decoder.ReadToken()
		at := r.add(node{from: r.offset() - 1, kind: kind})
		r.open = append(r.open, openNode{node: at})
		return err == nil
	}
	value, err := r.decoder.ReadValue()
	if err != nil {
		return false
	}
	from, to := r.offset()-int32(len(value)), r.offset()
	if r.nameTo == 0 && len(r.open) > 0 && r.tree.nodes[r.open[len(r.open)-1].node].kind == '{' {
		r.nameFrom, r.nameTo = from, to
		return true
	}
	r.add(node{from: from, to: to, kind: kind})
	return true
}

func (r *treeReader) offset() int32 { return int32(r.decoder.InputOffset()) }

// add appends a node and ties it to its parent.
func (r *treeReader) add(n node) int32 {
	at := int32(len(r.tree.nodes))
	n.nameFrom, n.nameTo = r.nameFrom, r.nameTo
	r.nameFrom, r.nameTo = 0, 0
	r.tree.nodes = append(r.tree.nodes, n)
	if len(r.open) > 0 {
		parent := &r.open[len(r.open)-1]
		if parent.last == 0 {
			r.tree.nodes[parent.node].first = at
		} else {
			r.tree.nodes[parent.last].next = at
		}
		parent.last = at
	}
	return at
}

// raw is the text of a value.
func (t *tree) raw(i int32) jsontext.Value {
	return t.text[t.nodes[i].from:t.nodes[i].to:t.nodes[i].to]
}

// name is the name of a member, empty for any other value.
func (t *tree) name(i int32) []byte {
	return unquoted(t.text[t.nodes[i].nameFrom:t.nodes[i].nameTo])
}

// unquoted gives what a JSON string says. One that is no UTF-8 stands for itself.
func unquoted(raw []byte) []byte {
	if len(raw) < 2 {
		return raw
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return inside
	}
	return text
}

// children gives the elements of an array or the members of an object, in order.
func (t *tree) children(i int32) []int32 {
	var list []int32
	for child := t.nodes[i].first; child != 0; child = t.nodes[child].next {
		list = append(list, child)
	}
	return list
}

// member finds the first member of a name; 0 means that there is none.
func (t *tree) member(i int32, name string) int32 {
	if t.nodes[i].kind != '{' {
		return 0
	}
	for child := t.nodes[i].first; child != 0; child = t.nodes[child].next {
		if string(t.name(child)) == name {
			return child
		}
	}
	return 0
}

// hashOf tells values apart that are aligned in arrays. The order of members is
// nothing, that of elements is. It needs the hashes of the children.
func (t *tree) hashOf(i int32) uint64 {
	var hash maphash.Hash
	hash.SetSeed(t.seed)
	n := &t.nodes[i]
	_ = hash.WriteByte(byte(t.kind(i)))
	switch n.kind {
	case '{':
		return maphash.Comparable(t.seed, t.memberSum(i))
	case '[':
		for child := n.first; child != 0; child = t.nodes[child].next {
			maphash.WriteComparable(&hash, t.nodes[child].hash)
		}
	case 't', 'f':
		_ = hash.WriteByte(byte(n.kind))
	case '"', '0':
		if payload, ok := t.payload(i); ok {
			maphash.WriteComparable(&hash, payload)
		} else {
			_, _ = hash.Write(t.says(i))
		}
	}
	return hash.Sum64()
}

func (t *tree) memberSum(i int32) uint64 {
	var sum uint64
	for child := t.nodes[i].first; child != 0; child = t.nodes[child].next {
		sum += maphash.Comparable(t.seed, [2]uint64{maphash.Bytes(t.seed, t.name(child)), t.nodes[child].hash})
	}
	return sum
}

// scalar is what a scalar says, without the quotes of a string.
func (t *tree) scalar(i int32) []byte {
	if t.nodes[i].kind == '"' {
		return unquoted(t.raw(i))
	}
	return t.raw(i)
}

// says is a scalar as it is compared: where a tracker has written an address of its
// memory, that there is one.
func (t *tree) says(i int32) []byte { return withoutAddresses(t.scalar(i)) }

// kind is that of the value: f for both booleans, and that of a string where a
// payload was set aside.
func (t *tree) kind(i int32) jsontext.Kind {
	if _, ok := t.aside(i); ok {
		return '"'
	}
	if kind := t.nodes[i].kind; kind != 't' {
		return kind
	}
	return 'f'
}

// aside gives the payload that was set aside where the value was.
func (t *tree) aside(i int32) (Payload, bool) {
	if t.nodes[i].kind != '0' || len(t.payloads) == 0 {
		return Payload{}, false
	}
	at, ok := mapping.BlobIndex(t.raw(i))
	if !ok || at >= len(t.payloads) {
		return Payload{}, false
	}
	return t.payloads[at], true
}

// payload gives what is kept of the content in a member data, set aside or not.
func (t *tree) payload(i int32) (Payload, bool) {
	if payload, ok := t.aside(i); ok {
		return payload, true
	}
	if t.nodes[i].kind != '"' || string(t.name(i)) != "data" {
		return Payload{}, false
	}
	return payloadOfText(t.raw(i)), true
}

// content gives what is kept of a string that is content, set aside or not.
func (t *tree) content(i int32) Payload {
	if payload, ok := t.aside(i); ok {
		return payload
	}
	return payloadOfText(t.raw(i))
}
