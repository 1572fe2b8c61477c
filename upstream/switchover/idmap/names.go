package idmap

import "strings"

// names are the names of the new tracker by those that clients use, and the reverse.
type names map[nameKey]string

// nameKey is a name, folded. native says that it is one of the new tracker.
type nameKey struct {
	kind   Kind
	native bool
	name   string
}

// flagList is the kind of a list of flags as changes have it: "review?(who@example.com), single+".
const flagList Kind = "flags"

func newNames(tables map[Kind]map[Name]Name) names {
	n := names{}
	for kind, table := range tables {
		for client, native := range table {
			if folded(client) != "" && folded(native) != "" {
				n[nameKey{kind, false, folded(client)}], n[nameKey{kind, true, folded(native)}] = string(native), string(client)
			}
		}
	}
	return n
}

// native returns the name at one side for one that a client uses.
func (n names) native(side Side, kind Kind, name string) string {
	return n.other(side, nameKey{kind, false, name})
}

// other looks a name up. The old tracker has no other names.
func (n names) other(side Side, key nameKey) string {
	name := key.name
	if key.name = folded(name); side == NewSide && n[key] != "" {
		return n[key]
	}
	return name
}

// client returns the name that clients use for one at one side.
func (n names) client(side Side, kind Kind, name string) string {
	if kind == flagList {
		return n.clientFlags(name)
	}
	return n.other(side, nameKey{kind, true, name})
}

func (n names) clientFlags(list string) string {
	flags := strings.Split(list, ", ")
	for i, flag := range flags {
		flag, requestee, asked := strings.Cut(flag, "?(")
		if asked {
			flag, requestee = flag+"?", "("+n.client(NewSide, user, strings.TrimSuffix(requestee, ")"))+")"
		}
		if status := len(flag) - 1; status > 0 {
			flags[i] = n.client(NewSide, FlagType, flag[:status]) + flag[status:] + requestee
		}
	}
	return strings.Join(flags, ", ")
}
