package compare

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Shape says how the parts of a value are found again on the other side. By default members are found by name, and elements by
// position.
type Shape struct {
	members map[string]*Shape
	// elements is that of elements, and of the members of an object with ids as names.
	elements *Shape
	array    arrayForm
	// keyed says that the names of an object's members are ids.
	keyed bool
	// entity says that it is an attachment, a flag type or a record of a change.
	entity bool
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

// unknownShape is that of a value of which nothing is known.
var unknownShape = &Shape{}

// shapes are those of the replies to each operation (interface.md section 3). Trackers give component lists and changed flag
// types in random order (tracker-behaviour.md sections 2 and 4).
var shapes = map[mapping.Operation]*Shape{
	mapping.OpFlagTypes: {members: map[string]*Shape{
		"bug":        {array: byIDOrName, elements: flagTypeShape},
		"attachment": {array: byIDOrName, elements: flagTypeShape},
	}},
	mapping.OpUpdateFlagTypes: {members: map[string]*Shape{
		"flagtypes": {array: inAnyOrder, elements: &Shape{entity: true}},
	}},
	mapping.OpBugAttachments: attachmentsShape,
	mapping.OpAttachment:     attachmentsShape,
	mapping.OpUpdateAttachments: {members: map[string]*Shape{
		"attachments": {array: byID, elements: &Shape{entity: true}},
	}},
}

var (
	flagTypeShape    = &Shape{entity: true, members: componentLists}
	attachmentShape  = &Shape{entity: true, members: map[string]*Shape{"flags": {array: byID}}}
	attachmentsShape = &Shape{members: map[string]*Shape{
		"bugs":        {keyed: true, elements: &Shape{array: byID, elements: attachmentShape}},
		"attachments": {keyed: true, elements: attachmentShape},
	}}
	// planShape is that of a request that a tracker would be sent.
	planShape      = &Shape{members: map[string]*Shape{"body": {members: componentLists}}}
	componentLists = map[string]*Shape{"inclusions": {array: withoutOrder}, "exclusions": {array: withoutOrder}}
)

func shapeOf(operation mapping.Operation) *Shape { return cmp.Or(shapes[operation], unknownShape) }

// inside gives the shape of an element, or of the member of an object.
func (s *Shape) inside(kind jsontext.Kind, name string) *Shape {
	inner := s.elements
	if kind == '{' && !s.keyed {
		inner = s.members[name]
	}
	return cmp.Or(inner, unknownShape)
}

// anyOrder reports whether the order of an array's elements means nothing.
func (s *Shape) anyOrder() bool { return s.array == inAnyOrder || s.array == withoutOrder }

const (
	// maxSegments is how many segments of a path are told apart. What lies deeper is all at one path, which ends in deepSegment.
	maxSegments = 64
	deepSegment = "[**]"
)

// place is where two values are compared: a difference there without its values.
type place struct {
	Difference
	segments int
}

func placeOf(path string) place { return place{Difference: Difference{Path: path, Pointer: path}} }

// step gives the place one segment further, given as in Path and as in Pointer.
func (p place) step(path, pointer string) place {
	switch p.segments++; {
	case p.segments == maxSegments+1:
		path, pointer = deepSegment, deepSegment
	case p.segments > maxSegments:
		return p
	}
	p.Path, p.Pointer = p.Path+path, p.Pointer+pointer
	return p
}

// fieldName is how the names of fields are written.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// memberSegment writes a member's name. One that does not look like a field's name may be data, so that only its digest is
// written: paths are stored for long.
func memberSegment(name string) string {
	switch {
	case fieldName.MatchString(name):
		return "." + name
	case name == changedFlags:
		return `["` + changedFlags + `"]`
	}
	return fmt.Sprintf(`["~%x"]`, hash(name)[:4])
}

// changedFlags is the one field whose name has a dot.
const changedFlags = "flagtypes.name"
