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

// The kinds. Those from Group to Bug have ids, those from Product to FlagType have names.
const (
	Bug        Kind = "bug"
	Attachment Kind = "attachment"
	Flag       Kind = "flag"
	FlagType   Kind = "flag_type"
	Group      Kind = "group"
	Product    Kind = "product"
	Component  Kind = "component"
	User       Kind = "user"
)

// Kinds lists the kinds that have ids.
func Kinds() []Kind { return []Kind{Bug, Attachment, FlagType, Flag, Group} }

// nameKinds lists the kinds that have names.
func nameKinds() []Kind { return []Kind{Product, Component, Group, FlagType, User} }

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
	Mode Mode `key:"mode" oneof:"identity|offset|table"`
	// Offset is for the modes offset and table; 0 is the default.
	Offset int64 `key:"offset" min:"0" max:"2147483646"`
}

// Settings are what an operator says of two trackers. Without rules there is nothing to translate.
type Settings struct {
	// IDs are the rules of the kinds that have others than the default.
	IDs map[Kind]Rule
	// Names are the names at the new tracker by those that clients use, which are those of the old tracker.
	Names map[Kind]map[string]string
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

// Problems lists what is wrong. bothWrite says that rules send writes to either tracker, so that both give out ids.
func (s Settings) Problems(bothWrite bool) (found []Problem) {
	add := func(section string, kind Kind, format string, args ...any) {
		found = append(found, Problem{section + "." + string(kind), fmt.Sprintf(format, args...)})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.IDs)) {
		switch r := s.rule(kind); {
		case !slices.Contains(Kinds(), kind):
			add("ids", kind, "is not one of %v", Kinds())
		case r.Mode == Identity && bothWrite && kind != Bug && kind != Group:
			add("ids", kind, "has the mode identity, but rules send writes to both trackers, which would give the same id to two objects")
		}
	}
	n := newNames(s.Names)
	for _, kind := range slices.Sorted(maps.Keys(s.Names)) {
		count := len(s.Names[kind])
		switch {
		case !slices.Contains(nameKinds(), kind):
			add("names", kind, "is not one of %v", nameKinds())
		case len(s.IDs) == 0:
			add("names", kind, "does nothing without ids")
		case len(n.natives[kind]) < count || len(n.clients[kind]) < count:
			add("names", kind, "has two names that a tracker cannot tell apart")
		}
	}
	return found
}

// folded is a name as trackers compare it.
func folded(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
