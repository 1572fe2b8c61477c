package canary

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"portico/mapping"
)

// maxPath is how many segments of a path are told apart. What lies deeper is all
// at one path, which ends in deepSegment.
const (
	maxPath     = 64
	deepSegment = "[**]"
)

// stablePath is one place in a stable path. Each stands once per comparison, so
// that a reply with a thousand flag types has no more of them than one with two.
type stablePath struct {
	text  string
	depth int
	// children are by segment, members by name.
	children, members map[string]*stablePath
	// rules are those whose pattern matches; known says that they were looked up.
	rules []*rule
	known bool
}

// segment gives the place one segment further, such as .name or [id].
func (p *stablePath) segment(text string) *stablePath {
	if p.depth >= maxPath {
		text = deepSegment
	}
	if child := p.children[text]; child != nil {
		return child
	}
	child := p
	if p.depth <= maxPath {
		child = &stablePath{text: p.text + text, depth: p.depth + 1}
	}
	if p.children == nil {
		p.children = map[string]*stablePath{}
	}
	p.children[text] = child
	return child
}

// member gives the place of a member.
func (p *stablePath) member(name []byte) *stablePath {
	if child := p.members[string(name)]; child != nil {
		return child
	}
	child := p.segment(memberSegment(string(name)))
	if p.members == nil {
		p.members = map[string]*stablePath{}
	}
	p.members[string(name)] = child
	return child
}

// memberSegment writes a member's name. One that does not look like a field's name
// may be data, so that only its digest is written: paths are kept for long.
func memberSegment(name string) string {
	switch {
	case isFieldName(name):
		return "." + name
	case name == "flagtypes.name":
		return `["flagtypes.name"]`
	}
	sum := sha256.Sum256([]byte(name))
	return `["~` + hex.EncodeToString(sum[:4]) + `"]`
}

// isFieldName tells whether a name is written like the names of fields are.
func isFieldName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// step is how the walk came from one value to the next. at is the position in an
// array, or -1; id the name or id by which the two sides were paired, as a node of tree.
type step struct {
	path *stablePath
	tree *tree
	id   int32
	at   int
}

// pointer writes the steps with ids and positions.
func pointer(root string, steps []step) string {
	var text strings.Builder
	text.WriteString(root)
	for i, s := range steps {
		if i == maxPath {
			text.WriteString(deepSegment)
			break
		}
		text.WriteString(s.text())
	}
	return text.String()
}

func (s step) text() string {
	switch {
	case s.tree == nil:
		return "[" + strconv.Itoa(s.at) + "]"
	case s.at >= 0:
		return "[" + idText(s.tree, s.id) + "]"
	case strings.HasSuffix(s.path.text, "[*]"):
		return "[" + keyText(string(s.tree.name(s.id))) + "]"
	default:
		return memberSegment(string(s.tree.name(s.id)))
	}
}

// shape says how the parts of a value are found again on the other side. The
// nil shape is a value of which nothing is known: members by name, elements by
// position.
type shape struct {
	members map[string]*shape
	// elements is that of elements, and of the members of an object with ids as names.
	elements *shape
	array    arrayForm
	// keyed says that the names of an object's members are ids.
	keyed bool
	// entity says that it is an attachment, a flag type or a record of a change.
	entity bool
	// content says that it is the content of an attachment.
	content bool
}

// arrayForm says how elements of an array are paired.
type arrayForm int

const (
	byPosition   arrayForm = iota
	byID                   // by the member id
	byIDOrName             // by id, and what is left by name and type
	inAnyOrder             // by id or name, and their order means nothing
	withoutOrder           // as a set
)

// shapes are those of the replies to each operation (interface.md, Endpoints).
// Trackers give component lists and changed flag types in random order
// (wire-facts.md sections 2 and 4).
var shapes = map[mapping.Operation]*shape{
	mapping.OpFlagTypes: {members: map[string]*shape{
		"bug":        {array: byIDOrName, elements: flagTypeShape},
		"attachment": {array: byIDOrName, elements: flagTypeShape},
	}},
	mapping.OpUpdateFlagTypes: {members: map[string]*shape{
		"flagtypes": {array: inAnyOrder, elements: &shape{entity: true}},
	}},
	mapping.OpBugAttachments: attachmentsShape,
	mapping.OpAttachment:     attachmentsShape,
	mapping.OpUpdateAttachments: {members: map[string]*shape{
		"attachments": {array: byID, elements: &shape{entity: true}},
	}},
}

var (
	flagTypeShape = &shape{entity: true, members: map[string]*shape{
		"inclusions": {array: withoutOrder}, "exclusions": {array: withoutOrder},
	}}
	attachmentShape = &shape{entity: true, members: map[string]*shape{
		"flags": {array: byID}, "data": {content: true},
	}}
	attachmentsShape = &shape{members: map[string]*shape{
		"bugs":        {keyed: true, elements: &shape{array: byID, elements: attachmentShape}},
		"attachments": {keyed: true, elements: attachmentShape},
	}}
	// planShape is that of a request that a tracker would be sent.
	planShape = &shape{members: map[string]*shape{
		"body": {members: map[string]*shape{
			"inclusions": {array: withoutOrder}, "exclusions": {array: withoutOrder}, "data": {content: true},
		}},
	}}
)

// member gives the shape of a member.
func (s *shape) member(name []byte) *shape {
	if s == nil {
		return nil
	}
	if s.keyed {
		return s.elements
	}
	return s.members[string(name)]
}

// element gives the shape of the elements.
func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.elements
}
