package canary

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Compare gives the differences between what the answering tracker said and what
// the other one said, in a stable order: status, code, message, headers, body.
// Those that a rule excuses are among them and name it. It only looks at its
// arguments, and takes time in proportion to their length.
//
// Where status or code differ, the rest is bound to differ and is left alone. Of
// very many differences of one class at one path the first hundred are given, and
// beyond ten thousand in all, the last one is of ClassDigest for the whole.
func Compare(operation mapping.Operation, answered, other Reply, rules Rules) []Difference {
	return newComparison(operation, rules).replies(answered, other)
}

// replies is Compare.
func (c *comparison) replies(answered, other Reply) []Difference {
	switch {
	case answered.Failure != "" || other.Failure != "":
		c.texts(ClassFailure, PathFailure, answered.Failure, other.Failure)
	case c.outcome(answered, other):
	default:
		c.texts(ClassMessage, PathMessage, answered.Message, other.Message)
		c.headers(answered.Header, other.Header)
		c.bodies(answered, other)
	}
	return c.found
}

// ComparePlans compares the requests that two trackers would be sent for the same
// call, given as JSON objects; nil is that of a tracker that has no form for it.
// All differences are of ClassPlan.
func ComparePlans(operation mapping.Operation, answered, other jsontext.Value, rules Rules) []Difference {
	c := newComparison(operation, rules)
	c.shape, c.plan = planShape, true
	if answered == nil || other == nil {
		if answered != nil || other != nil {
			c.add(ClassPlan, c.outside(PathRefused), answered, other)
		}
		return c.found
	}
	c.bodies(Reply{Body: answered}, Reply{Body: other})
	return c.found
}

// comparison is the state of one Compare.
type comparison struct {
	operation mapping.Operation
	rules     Rules
	shape     *shape
	plan      bool

	want, have *tree
	// samePayloads says that equal placeholders stand for equal content.
	samePayloads bool

	steps []step
	found []Difference
	seen  map[seenKey]int
	// most is how many differences of one class at one path are given. Those that
	// are expected are counted apart, so that they leave room for the others.
	most     int
	expected func(Difference) bool
	// full says that differences were left out.
	full bool

	place          *stablePath
	wantIn, haveIn jsontext.Value
}

// seenKey counts differences that say the same.
type seenKey struct {
	class    Class
	path     string
	rule     string
	expected bool
}

const (
	maxAlike = 100
	maxFound = 10_000
)

func newComparison(operation mapping.Operation, rules Rules) *comparison {
	return &comparison{operation: operation, rules: rules, shape: shapes[operation], seen: map[seenKey]int{}, most: maxAlike}
}

// outside is a path that is not in a body.
func (c *comparison) outside(path string) *stablePath { return &stablePath{text: path} }

// outcome compares status and code, and tells whether they differ.
func (c *comparison) outcome(answered, other Reply) bool {
	c.integers(ClassStatus, PathStatus, answered.Status, other.Status)
	c.integers(ClassCode, PathCode, answered.Code, other.Code)
	return answered.Status != other.Status || answered.Code != other.Code
}

func (c *comparison) integers(class Class, path string, want, have int) {
	if want != have {
		c.add(class, c.outside(path), jsontext.Value(strconv.Itoa(want)), jsontext.Value(strconv.Itoa(have)))
	}
}

// address is how Perl writes a reference: it is another one each time.
var address = regexp.MustCompile(`\b([A-Z]+)\(0x[0-9a-fA-F]+\)`)

// texts compares two texts outside of bodies; empty means that there is none.
func (c *comparison) texts(class Class, path, want, have string) {
	if want == have || class == ClassMessage && masked(want) == masked(have) {
		return
	}
	c.add(class, c.outside(path), textOrNil(want), textOrNil(have))
}

func masked(message string) string { return string(withoutAddresses([]byte(message))) }

// withoutAddresses leaves of each address what kind of thing is there.
func withoutAddresses(text []byte) []byte {
	if !bytes.Contains(text, []byte("(0x")) {
		return text
	}
	return address.ReplaceAll(text, []byte("$1(0x)"))
}

func textOrNil(text string) jsontext.Value {
	if text == "" {
		return nil
	}
	return quote(text)
}

// quote makes a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(text string) jsontext.Value {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

func (c *comparison) headers(want, have map[string]string) {
	names := maps.Clone(want)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, have)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		first, ok := want[name]
		second, also := have[name]
		if first != second || ok != also {
			c.add(ClassHeader, c.outside(PathHeader+name), given(first, ok), given(second, also))
		}
	}
}

func given(text string, ok bool) jsontext.Value {
	if !ok {
		return nil
	}
	return quote(text)
}

// bodies compares the bodies member by member if both can be read so.
func (c *comparison) bodies(answered, other Reply) {
	if answered.Digest != nil || other.Digest != nil {
		c.digests(answered, other)
		return
	}
	root := &stablePath{text: "$"}
	if answered.Body == nil || other.Body == nil {
		c.presence(root, answered.Body, other.Body)
		return
	}
	c.samePayloads = slices.Equal(answered.Payloads, other.Payloads)
	if c.samePayloads && bytes.Equal(answered.Body, other.Body) {
		return
	}
	seed := maphash.MakeSeed()
	want, ok := newTree(answered.Body, answered.Payloads, seed)
	have, also := newTree(other.Body, other.Payloads, seed)
	if !ok || !also {
		c.digests(answered, other)
		return
	}
	c.want, c.have = want, have
	c.values(root, c.shape, 0, 0)
	if c.full {
		c.found = append(c.found, c.whole(answered.whole(c.shape), other.whole(c.shape)))
	}
}

func (c *comparison) presence(path *stablePath, want, have jsontext.Value) {
	switch {
	case have != nil:
		c.add(ClassExtra, path, nil, have)
	case want != nil:
		c.add(ClassMissing, path, want, nil)
	}
}

// digests compares the whole answers. Two with one digest are equal, however many
// bytes white space and escapes take; any others cannot be told apart further.
func (c *comparison) digests(answered, other Reply) {
	want, have := answered.whole(c.shape), other.whole(c.shape)
	if want == have || want != nil && have != nil && want.SHA256 == have.SHA256 {
		return
	}
	d := c.whole(want, have)
	c.add(d.Class, c.outside(d.Path), d.Want, d.Have)
}

func (c *comparison) whole(want, have *Payload) Difference {
	d := Difference{Class: ClassDigest, Path: "$", Pointer: "$"}
	if c.plan {
		d.Class = ClassPlan
	}
	if want != nil {
		d.Want = want.raw()
	}
	if have != nil {
		d.Have = have.raw()
	}
	return d
}

// whole is the digest of the whole body and of what was set aside, nil where there is
// none. A body that has too many values to be taken apart is as loose about their
// order and spelling as one beyond the cap.
func (r Reply) whole(shape *shape) *Payload {
	if r.Digest != nil || r.Body == nil {
		return r.Digest
	}
	digest := Digest{loose: newLooseDigest(shape)}
	_, _ = digest.Write(r.Body) // a digest never fails
	body := digest.Payload()
	if len(r.Payloads) == 0 {
		return &body
	}
	hash := sha256.New()
	_, _ = hash.Write([]byte(body.SHA256))
	for _, payload := range r.Payloads {
		body.Size += payload.Size
		_, _ = hash.Write(payload.raw())
	}
	return &Payload{Size: body.Size, SHA256: hex.EncodeToString(hash.Sum(nil))}
}

// add keeps a difference, and says which rule excuses it.
func (c *comparison) add(class Class, path *stablePath, want, have jsontext.Value) {
	d := Difference{Class: class, Path: path.text, Pointer: pointer(path.root(), c.steps), Want: want, Have: have}
	if c.place != nil {
		d.Place, d.WantIn, d.HaveIn = c.place.text, c.wantIn, c.haveIn
	}
	d.Rule = c.rules.excuse(c.operation, path, d)
	if c.plan {
		d.Class = ClassPlan
	}
	key := seenKey{class: d.Class, path: d.Path, rule: d.Rule, expected: c.expected != nil && c.expected(d)}
	switch {
	case c.seen[key] >= c.most:
	case len(c.found) >= maxFound:
		c.full = true
	default:
		c.seen[key]++
		c.found = append(c.found, d)
	}
}

// root is how a pointer to the place begins.
func (p *stablePath) root() string {
	if p.text[0] == '$' {
		return "$"
	}
	return p.text
}
