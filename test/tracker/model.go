package tracker

import (
	"slices"
	"strings"
	"time"
)

// timeForm is the form of every time in an answer (tracker-behaviour.md section 5).
const timeForm = "2006-01-02T15:04:05Z"

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }

type user struct {
	id           int
	login        string
	realName     string
	password     string
	keys         []apiKey
	groups       []int
	disabledText string
}

type apiKey struct {
	text    string
	revoked bool
}

type group struct {
	id          int
	name        string
	description string
}

// adminGroup is the group whose members inherit every other (tracker-behaviour.md section 2 and 5: the administrator sees all).
const adminGroup = 1

// Groups with a meaning of their own, by name.
const (
	editComponentsGroup = "editcomponents"
	editBugsGroup       = "editbugs"
	editUsersGroup      = "editusers"
)

type product struct {
	id          int
	name        string
	description string
	closed      bool
	// group restricts sight of the product and of the bugs filed in it; 0 means no group.
	group int
	// editors may administer this product without being global editors; 0 means no group.
	editors int
}

type component struct {
	id          int
	product     int
	name        string
	description string
}

type bug struct {
	id         int
	aliases    []string
	product    int
	component  int
	version    string
	summary    string
	status     string
	resolution string
	priority   string
	severity   string
	platform   string
	opSys      string
	url        string
	whiteboard string
	milestone  string
	// dupeOf is the id of the bug that this one repeats, or nil.
	dupeOf      any
	reporter    int
	assignee    int
	cc          []int
	groups      []int
	created     time.Time
	changed     time.Time
	comments    []comment
	attachments []int
	flags       []flag
}

// commentKind tells what a comment is about; its text is put together when it is read.
type commentKind int

const (
	plainComment commentKind = iota
	attachmentCreated
	attachmentUpdated
)

type comment struct {
	id         int
	author     int
	at         time.Time
	text       string
	kind       commentKind
	attachment int
	private    bool
}

type attachment struct {
	id          int
	bug         int
	data        []byte
	deleted     bool
	created     time.Time
	changed     time.Time
	fileName    string
	summary     string
	contentType string
	private     bool
	obsolete    bool
	patch       bool
	creator     int
	flags       []flag
}

type flag struct {
	id        int
	flagType  int
	status    string
	setter    int
	requestee int
	created   time.Time
	changed   time.Time
}

// anyProduct in an inclusion stands for all products, anyComponent for all components of the product.
const (
	anyProduct   = 0
	anyComponent = 0
)

// place is one inclusion or exclusion.
type place struct{ product, component int }

func (p place) covers(product, component int) bool {
	return (p.product == anyProduct || p.product == product) && (p.component == anyComponent || p.component == component)
}

type flagType struct {
	id            int
	name          string
	description   string
	target        string
	ccList        string
	sortkey       int
	active        bool
	requestable   bool
	requesteeble  bool
	multiplicable bool
	grantGroup    int
	requestGroup  int
	inclusions    []place
	exclusions    []place
}

// plainType is an active flag type without restrictions.
func plainType(target, name, description string, sortkey int, in []place, out ...place) flagType {
	return flagType{target: target, name: name, description: description, sortkey: sortkey, inclusions: in, exclusions: out,
		active: true, requestable: true, requesteeble: true, multiplicable: true}
}

// The two targets of flag types.
const (
	targetBug        = "bug"
	targetAttachment = "attachment"
)

// validFor tells whether flags of the type can be set in a component.
func (f *flagType) validFor(product, component int) bool {
	covers := func(p place) bool { return p.covers(product, component) }
	return slices.ContainsFunc(f.inclusions, covers) && !slices.ContainsFunc(f.exclusions, covers)
}

// listedFor tells whether the type is listed for a whole product: an exclusion of one component does not hide it (tracker-behaviour.md section 2).
func (f *flagType) listedFor(product int) bool {
	return slices.ContainsFunc(f.inclusions, func(p place) bool { return p.product == anyProduct || p.product == product }) &&
		!slices.ContainsFunc(f.exclusions, func(p place) bool { return p.covers(product, -1) })
}

// compareFlagTypes is the order of lists: sortkey, then name (tracker-behaviour.md section 2).
func compareFlagTypes(a, b *flagType) int {
	if a.sortkey != b.sortkey {
		return a.sortkey - b.sortkey
	}
	if c := strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)); c != 0 {
		return c
	}
	return a.id - b.id
}
