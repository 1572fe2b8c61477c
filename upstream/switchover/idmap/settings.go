package idmap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of object that has ids, names or both.
type Kind string

// The kinds.
const (
	Bug        Kind = "bug"
	Attachment Kind = "attachment"
	Flag       Kind = "flag"
	FlagType   Kind = "flag_type"
	Group      Kind = "group"
	product    Kind = "product"
	component  Kind = "component"
	user       Kind = "user"
)

// Kinds lists the kinds that have ids.
func Kinds() []Kind { return []Kind{Bug, Attachment, FlagType, Flag, Group} }

// words is the kind in words.
func (k Kind) words() string { return strings.ReplaceAll(string(k), "_", " ") }

// Mode says how the ids of one kind are translated.
type Mode string

// The modes.
const (
	// Identity is for ids that both trackers share.
	Identity Mode = "identity"
	// Offset is for ids that both trackers give out: clients see an object of the new tracker under its id plus the offset.
	Offset Mode = "offset"
	// Table is Offset where an import has told which objects both trackers have.
	Table Mode = "table"
)

const (
	// DefaultOffset is the offset where the configuration has none.
	DefaultOffset = 1_000_000_000
	// maxID is the largest id that clients are shown: some keep ids in 32 bits.
	maxID = 1<<31 - 1
)

// Rule says how the ids of one kind are translated.
type Rule struct {
	// Mode is empty for the default: identity for bugs and groups, and offset for all others.
	Mode Mode `key:"mode" unset:"" oneof:"identity|offset|table"`
	// Offset is for the modes offset and table; 0 is the default.
	Offset int64 `key:"offset" min:"0" max:"2147483646"`
}

// Name is a name of an object.
type Name string

// Names are the names at the new tracker by those that clients use, which are those of the old tracker. Trackers do not tell names apart that
// only differ in case.
type Names struct {
	Product   map[Name]Name `key:"product"`
	Component map[Name]Name `key:"component"`
	Group     map[Name]Name `key:"group"`
	FlagType  map[Name]Name `key:"flag_type"`
	User      map[Name]Name `key:"user"`
}

func (n Names) tables() map[Kind]map[Name]Name {
	return map[Kind]map[Name]Name{product: n.Product, component: n.Component, Group: n.Group, FlagType: n.FlagType, user: n.User}
}

// Settings are what an operator says of two trackers. Without rules nothing is translated.
type Settings struct {
	// IDs are the rules. A kind that has none has the default.
	IDs map[Kind]Rule `key:"ids"`
	// Names are other names at the new tracker.
	Names Names `key:"names"`
}

// rule is the one of a kind, with its defaults.
func (s Settings) rule(kind Kind) Rule {
	r := s.IDs[kind]
	if r.Mode == "" {
		if r.Mode = Offset; kind == Bug || kind == Group {
			r.Mode = Identity
		}
	}
	r.Offset = cmp.Or(r.Offset, DefaultOffset)
	return r
}

// Problem is something wrong with settings.
type Problem struct {
	// Key is the member of Settings in the words of the configuration, such as ids.bug.
	Key, Message string
}

// Problems lists what is wrong. bothWrite says that both trackers get writes or copies of them, and give out ids.
func (s Settings) Problems(bothWrite bool) (found []Problem) {
	add := func(section string, kind Kind, format string, args ...any) {
		found = append(found, Problem{section + "." + string(kind), fmt.Sprintf(format, args...)})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.IDs)) {
		if !slices.Contains(Kinds(), kind) {
			add("ids", kind, "is not one of %v", Kinds())
		} else if bothWrite && s.rule(kind).Mode == Identity && kind != Bug && kind != Group {
			add("ids", kind, "has the mode identity, but both trackers get writes or copies, and would give the same id to two objects")
		}
	}
	tables := s.Names.tables()
	for _, kind := range slices.Sorted(maps.Keys(tables)) {
		if table := tables[kind]; len(table) > 0 && len(s.IDs) == 0 {
			add("names", kind, "does nothing without ids")
		} else if len(newNames(map[Kind]map[Name]Name{kind: table})) < 2*len(table) {
			add("names", kind, "has two names that a tracker cannot tell apart, or an empty one")
		}
	}
	return found
}

// folded is a name as trackers compare it.
func folded[T ~string](name T) string { return strings.ToLower(strings.TrimSpace(string(name))) }
