package switchover

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// table is a Table made ready for many decisions. It never changes but for its
// counts.
type table struct {
	revision state.Revision
	// source is what the revision says.
	source Table
	// killed is the kill that counts: the stored one, or pending, which is one that
	// the ledger may not know of.
	killed  *Kill
	pending *undelivered
	rules   []rule
	// everywhere is what rules could tell apart in all products.
	everywhere  []object
	passthrough PhasePair
	// home is the side that is asked first where something belongs: the one that
	// has whatever no rule speaks of.
	home side
	// current ends when another table counts.
	current context.Context
	replace context.CancelFunc
}

// rule is a Rule made ready.
type rule struct {
	Rule
	operations uint8 // a bit for each, 0 for all
	agents     []agent
	// placed says that the rule asks for a place or an id.
	placed bool
	hits   [2]atomic.Int64
}

// agent is a condition on a user agent.
type agent struct {
	text string
	open bool // text is only the beginning
}

func newTable(source Table, revision state.Revision) *table {
	t := &table{revision: revision, source: source, rules: make([]rule, len(source.Rules))}
	t.current, t.replace = context.WithCancel(context.Background())
	for i, given := range source.Rules {
		t.rules[i].prepare(given)
	}
	t.everywhere = t.allPlaces()
	last := source.Rules[len(source.Rules)-1]
	t.home = last.Reads.side()
	t.passthrough = PhasePair{last.Reads, last.Writes}
	if source.Passthrough != nil {
		t.passthrough = *source.Passthrough
	}
	return t.killedBy(source.Killed)
}

// killedBy throws the kill switch of a table that nobody uses yet.
func (t *table) killedBy(kill *Kill) *table {
	if kill != nil {
		t.killed, t.home, t.passthrough = kill, oldSide, PhasePair{PhaseOld, PhaseOld}
	}
	return t
}

func (r *rule) prepare(given Rule) {
	r.Rule = given
	for _, operation := range given.Operations {
		r.operations |= operationBit(operation)
	}
	for _, text := range given.UserAgents {
		prefix, open := strings.CutSuffix(text, "*")
		r.agents = append(r.agents, agent{prefix, open})
	}
	r.placed = len(given.Products)+len(given.Components)+len(given.Bugs)+len(given.Attachments) > 0
}

func operationBit(operation mapping.Operation) uint8 {
	switch operation {
	case mapping.OpFlagTypes:
		return 1
	case mapping.OpCreateFlagType:
		return 2
	case mapping.OpUpdateFlagTypes:
		return 4
	case mapping.OpBugAttachments:
		return 8
	case mapping.OpAttachment:
		return 16
	case mapping.OpCreateAttachment:
		return 32
	default:
		return 64
	}
}

// question is one call as far as all of its objects have it in common.
type question struct {
	caller    *upstream.Caller
	operation mapping.Operation
	write     bool
	// name is the caller's, once named.
	name  string
	named bool
	// who is the digest of the caller's credential, once digested.
	who      digest
	digested bool
	// followLooks counts the lookups for following, which end at followUntil, in
	// nanoseconds since 1970: a time.Time would put each question on the heap.
	followLooks int
	followUntil int64
	// looked lists the lookups; nil when nobody wants to know.
	looked *[]string
}

// phase is what counts for the question under a rule.
func (q *question) phase(r *rule) Phase {
	if q.write {
		return r.Writes
	}
	return r.Reads
}

// asks tells whether the conditions on caller and operation are met.
func (s *Switchover) asks(r *rule, q *question) bool {
	return (r.operations == 0 || r.operations&operationBit(q.operation) != 0) &&
		(len(r.Callers) == 0 || s.named(r, q)) &&
		(len(r.agents) == 0 || r.agent(q.caller.UserAgent)) &&
		(r.Percent == nil || share(r.Name, q.caller) < *r.Percent/100)
}

func (s *Switchover) named(r *rule, q *question) bool {
	if !q.named {
		q.named = true
		if s.options.Caller != nil {
			q.name = s.options.Caller(*q.caller)
		}
	}
	return q.name != "" && slices.Contains(r.Callers, q.name)
}

func (r *rule) agent(name string) bool {
	for _, agent := range r.agents {
		if name == agent.text || agent.open && strings.HasPrefix(name, agent.text) {
			return true
		}
	}
	return false
}

// answer is whether a rule's conditions on ids and places are met.
type answer uint8

const (
	no answer = iota
	yes
	unknown
)

// place tells whether an object is where a rule wants it, from what is known.
func (r *rule) place(o *object, f *facts) answer {
	if !r.placed {
		return yes
	}
	if len(r.Attachments) > 0 && (o.kind != attachmentObject || !inRanges(r.Attachments, o.id)) {
		return no
	}
	byBug, byName := r.byBug(o, f), r.byName(o, f)
	switch {
	case byBug == no || byName == no:
		return no
	case byBug == unknown || byName == unknown:
		return unknown
	default:
		return yes
	}
}

func (r *rule) byBug(o *object, f *facts) answer {
	if len(r.Bugs) == 0 {
		return yes
	}
	id := f.place.Bug
	if o.kind == bugObject && o.alias == "" {
		id = o.id
	}
	switch {
	case o.kind == typesObject:
		return no
	case id == 0:
		return unknown
	default:
		return met(inRanges(r.Bugs, id))
	}
}

func (r *rule) byName(o *object, f *facts) answer {
	product, component := o.product, o.component
	if o.kind != typesObject {
		product, component = f.place.Product, f.place.Component
	}
	switch {
	case len(r.Products) == 0 && len(r.Components) == 0:
		return yes
	case o.kind != typesObject && product == "":
		return unknown
	default:
		return met((len(r.Products) == 0 || hasName(r.Products, product)) &&
			(len(r.Components) == 0 || hasName(r.Components, component)))
	}
}

func met(is bool) answer {
	if is {
		return yes
	}
	return no
}

func inRanges(ranges []Range, id int64) bool {
	for _, r := range ranges {
		if r.Has(id) {
			return true
		}
	}
	return false
}

func hasName(names []string, name string) bool {
	for _, one := range names {
		if sameName(one, name) {
			return true
		}
	}
	return false
}
