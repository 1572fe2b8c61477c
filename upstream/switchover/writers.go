package switchover

import (
	"maps"
	"slices"

	"portico/mapping"
)

// twoWrites are writes by two operations that may be of one object.
type twoWrites struct {
	operations [2]mapping.Operation
	of         [2]object
}

// writesOfOne lists the writes of a situation that may be of one object.
func writesOfOne(s *situation) []twoWrites {
	var (
		types       = object{kind: typesObject, product: s.product, component: s.component}
		product     = object{kind: typesObject, product: s.product}
		bug         = object{kind: bugObject, id: s.bug}
		added       = object{kind: attachmentObject, id: later}
		flagTypes   = [2]mapping.Operation{mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes}
		attachments = [2]mapping.Operation{mapping.OpCreateAttachment, mapping.OpUpdateAttachments}
	)
	return []twoWrites{
		{flagTypes, [2]object{types, types}},
		{flagTypes, [2]object{product, product}},
		{attachments, [2]object{bug, added}},
	}
}

// parted are pairs of rules, first the one that writes at the new tracker, each with the operation that it writes by.
type parted map[[2]int]mapping.Operation

// look at two writes, which may go to two trackers.
func (p parted) look(r *reach, w *twoWrites, s *situation) {
	for one, other := range []int{1, 0} {
		writer, elsewhere := r.first(w.operations[one], w.of[one], s), r.first(w.operations[other], w.of[other], s)
		if writer >= 0 && elsewhere >= 0 && r.rules[writer].Writes.New() && !r.rules[elsewhere].Writes.New() {
			p[[2]int{writer, elsewhere}] = w.operations[one]
		}
	}
}

// partedWriters warns where what one operation has written is written at another tracker by another one: neither has it all then.
func (c *checker) partedWriters(all parted) {
	for _, rules := range slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		c.at = rules[0]
		c.warn("writes", "%s goes to the new tracker, and other writes of the same objects to the old one, by rule %d (%q), so one object can be written in both trackers",
			all[rules], rules[1]+1, c.rules[rules[1]].Name)
	}
}
