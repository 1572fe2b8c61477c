package idmap

import "strings"

// names are the names of the new tracker by those that clients use, and the reverse, by kind and folded.
type names struct{ natives, clients map[Kind]map[string]string }

// flagList is the kind of a list of flags as changes have it: "review?(who@example.com), single+".
const flagList Kind = "flags"

func newNames(configured Names) names {
	n := names{map[Kind]map[string]string{}, map[Kind]map[string]string{}}
	for kind, table := range configured.tables() {
		n.natives[kind], n.clients[kind] = map[string]string{}, map[string]string{}
		for client, native := range table {
			n.natives[kind][folded(client)], n.clients[kind][folded(native)] = string(native), string(client)
		}
	}
	return n
}

// native returns the name at one side for one that a client uses.
func (n names) native(side Side, kind Kind, name string) string {
	return replaced(n.natives[kind], side, name)
}

// replaced looks a name up. The old tracker has no other names.
func replaced(table map[string]string, side Side, name string) string {
	if side == NewSide && len(table) > 0 {
		if other, ok := table[folded(name)]; ok {
			return other
		}
	}
	return name
}

// client returns the name that clients use for one at one side.
func (n names) client(side Side, kind Kind, name string) string {
	if kind == flagList && side == NewSide {
		return n.clientFlags(name)
	}
	return replaced(n.clients[kind], side, name)
}

func (n names) clientFlags(list string) string {
	flags := strings.Split(list, ", ")
	for i, flag := range flags {
		if at := strings.LastIndexAny(flag, "?+-"); at > 0 {
			flags[i] = n.client(NewSide, FlagType, flag[:at]) + flag[at:]
		}
		if text, requestee, ok := strings.Cut(flags[i], "?("); ok {
			flags[i] = text + "?(" + n.client(NewSide, user, strings.TrimSuffix(requestee, ")")) + ")"
		}
	}
	return strings.Join(flags, ", ")
}
