package switchover

import (
	"maps"
	"slices"

	"portico/mapping"
)

// later is an attachment that is yet to be made: it gets an id beyond all ranges
// that end.
const later = int64(1) << 62

// together looks at the rules as a list: whether there is a call for each, and
// whether what one has written at the new tracker another one reads at the old.
func (c *checker) together() {
	if slices.ContainsFunc(c.found, func(p Problem) bool { return !p.Warning }) {
		return // first things first
	}
	a := axesOf(c.rules)
	if a.size() > reachMost {
		c.at = -1
		c.warn("", "the rules tell apart so many calls that only pairs of them were checked")
		return
	}
	r := newReach(c.rules)
	said, apart := findings{}, parted{}
	a.each(func(s *situation) {
		for _, pair := range writesAndReads(s) {
			said.behind(r, &pair, s)
		}
		for _, two := range writesOfOne(s) {
			apart.look(r, &two, s)
		}
	})
	c.report(said)
	c.partedWriters(apart)
	for i, reached := range r.reached {
		if c.at = i; !reached {
			c.add("", "%q is never reached: rules before it take every call that it would match, or no call meets all its conditions", c.rules[i].Name)
		}
	}
}

// besidePassthrough warns where the paths that are no operations are ahead of the rules or behind them: much of what the older
// interfaces read and write is the same as what the rules are about.
func (c *checker) besidePassthrough(pass *PhasePair) {
	c.at = -1
	for i, rule := range c.rules {
		switch {
		case pass.Writes.New() && !rule.Reads.New():
			c.warn("passthrough.writes", "what other paths write at the new tracker, XML-RPC among them, is read at the old one by rule %d (%q)", i+1, rule.Name)
			return
		case rule.Writes.New() && !pass.Reads.New():
			c.warn("passthrough.reads", "other paths, XML-RPC and pages among them, read at the old tracker what rule %d (%q) writes at the new one", i+1, rule.Name)
			return
		}
	}
}

// pair is a write, and a read that shows it.
type pair struct {
	write, read    mapping.Operation
	written, shown object
	// part says that the read shows more than what was written, and goes elsewhere
	// for that reason.
	part string
}

// writesAndReads lists what a situation's writes show in.
func writesAndReads(s *situation) []pair {
	var (
		types      = object{kind: typesObject, product: s.product, component: s.component}
		product    = object{kind: typesObject, product: s.product}
		bug        = object{kind: bugObject, id: s.bug}
		attachment = object{kind: attachmentObject, id: s.attachment}
		added      = object{kind: attachmentObject, id: later}
	)
	return []pair{
		{write: mapping.OpCreateFlagType, read: mapping.OpFlagTypes, written: types, shown: types},
		{write: mapping.OpUpdateFlagTypes, read: mapping.OpFlagTypes, written: types, shown: types},
		{write: mapping.OpCreateFlagType, read: mapping.OpFlagTypes, written: product, shown: product},
		{write: mapping.OpUpdateFlagTypes, read: mapping.OpFlagTypes, written: product, shown: product},
		{write: mapping.OpCreateAttachment, read: mapping.OpBugAttachments, written: bug, shown: bug},
		{write: mapping.OpCreateAttachment, read: mapping.OpAttachment, written: bug, shown: added},
		{write: mapping.OpUpdateAttachments, read: mapping.OpAttachment, written: attachment, shown: attachment},
		{write: mapping.OpUpdateAttachments, read: mapping.OpBugAttachments, written: attachment, shown: attachment, part: "an attachment beside bugs"},
		{write: mapping.OpCreateAttachment, read: mapping.OpAttachment, written: bug, shown: bug, part: "a bug beside attachments"},
		{write: mapping.OpUpdateAttachments, read: mapping.OpBugAttachments, written: attachment, shown: bug, part: "the list of a bug's attachments"},
		{write: mapping.OpCreateFlagType, read: mapping.OpFlagTypes, written: types, shown: product, part: "the flag types of a whole product"},
		{write: mapping.OpUpdateFlagTypes, read: mapping.OpFlagTypes, written: types, shown: product, part: "the flag types of a whole product"},
	}
}

// findings are the rules of which one writes at the new tracker what another one
// reads at the old, each with the part that is read there, or with "" for all.
type findings map[[2]int]string

// behind looks at one write and the read that shows it.
func (f findings) behind(r *reach, p *pair, s *situation) {
	writer, reader := r.first(p.write, p.written, s), r.first(p.read, p.shown, s)
	if writer < 0 || reader < 0 || !r.rules[writer].Writes.New() || r.rules[reader].Reads.New() {
		return
	}
	if part, known := f[[2]int{writer, reader}]; !known || part != "" {
		f[[2]int{writer, reader}] = p.part
	}
}

func (c *checker) report(all findings) {
	for _, rules := range slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		part, reader := all[rules], c.rules[rules[1]].Name
		if c.at = rules[0]; part != "" {
			c.warn("writes", "%s is read at the old tracker, by rule %d (%q): others do not see there what this rule writes", part, rules[1]+1, reader)
			continue
		}
		c.add("reads", "reads are behind writes: what this rule writes at the new tracker is read at the old one, by rule %d (%q)", rules[1]+1, reader)
	}
}
