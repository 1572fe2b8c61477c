package switchover

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// ruleSet is what decides about calls: rules and settings, prepared for many decisions. It never
// changes but for its counts; a call that began with one ends with it.
type ruleSet struct {
	Settings
	// source is the table of the revision.
	source   Table
	revision state.Revision
	since    time.Time // when it came into force here
	// killed is the kill in force: the stored one, or one that the store does not have yet.
	killed *Kill
	// hits are how often each rule decided, for each side.
	hits [][2]atomic.Int64
	// everywhere is what rules could tell apart in all products.
	everywhere  []object
	passthrough PhasePair
	// home is the side that is asked first where something belongs: that of all
	// objects that only the last rule matches.
	home side
	// current ends when another rule set is in force.
	current context.Context
	replace context.CancelFunc
}

func newRuleSet(settings Settings, source Table, revision state.Revision, killed *Kill) *ruleSet {
	r := &ruleSet{Settings: settings, source: source, revision: revision, killed: killed, hits: make([][2]atomic.Int64, len(source.Rules))}
	r.current, r.replace = context.WithCancel(context.Background())
	r.everywhere = r.appendProduct(nil, "")
	for _, given := range source.Rules {
		for _, product := range given.Products {
			r.everywhere = r.appendProduct(r.everywhere, product)
		}
	}
	r.home, r.passthrough = source.Rules[len(source.Rules)-1].Reads.side(), source.others()
	if killed != nil {
		r.passthrough = PhasePair{PhaseOld, PhaseOld}
	}
	return r
}

// callInfo is what all objects of one call have in common, and the rules that decide about it.
type callInfo struct {
	*ruleSet
	caller    *upstream.Caller
	operation mapping.Operation
	// begun is when the rules began to decide about a write.
	begun time.Time
	// writeLookups counts the lookups of what earlier writes were about.
	writeLookups int
	// uncopied are writes of any caller that made what the call reads, and that are not copied yet, waiting all such writes of the caller, nil before
	// the journal was asked.
	uncopied, waiting []written
	// mayDecide are the rules that may have decided a write that is under way.
	mayDecide []*Rule
	// recorded says that the journal finds out an unknown outcome.
	recorded bool
}

// identity tells callers apart by all that they show to log in, wherever they call from. It stays in this process.
type identity [16]byte

func (info *callInfo) identity() identity {
	caller := *info.caller
	caller.Address = ""
	return caller.Identity()
}

// label is the name that the configuration gives to the caller, empty for none.
func (info *callInfo) label() string { return info.Caller(*info.caller) }

// matches reports whether the conditions on operation and caller are met.
func (info *callInfo) matches(rule *Rule) bool {
	return rule.meets(info.operation, info.caller.UserAgent, info.label) &&
		(rule.Percent == nil || info.caller.Position(rule.Name) < *rule.Percent/100)
}

// meets reports whether the conditions on operation and caller are met, but for the percentage. label gives the caller's name.
func (r *Rule) meets(operation mapping.Operation, agent string, label func() string) bool {
	return (len(r.Operations) == 0 || slices.Contains(r.Operations, operation)) &&
		(len(r.UserAgents) == 0 || slices.ContainsFunc(r.UserAgents, func(text string) bool { return coversAgent(text, agent) })) &&
		(len(r.Callers) == 0 || slices.Contains(r.Callers, label()))
}

// match is whether a rule's conditions on ids and places are met.
type match uint8

const (
	matchNo match = iota
	matchYes
	matchUnknown
)

// matchesObject reports whether an object is where the rule wants it, by the request and by what was looked up.
func (r *Rule) matchesObject(o *object, found *mapping.Place) match {
	bug, product, component := found.Bug, found.Product, found.Component
	isTypes := o.kind == typesObject
	if isTypes {
		product, component = o.product, o.component
	} else if o.kind == bugObject && o.alias == "" {
		bug = o.id
	}
	placed := isTypes || product != ""
	switch {
	case len(r.Attachments) > 0 && (o.kind != attachmentObject || !inRanges(r.Attachments, o.id)),
		len(r.Bugs) > 0 && (isTypes || bug != 0 && !inRanges(r.Bugs, bug)),
		placed && len(r.Products) > 0 && !hasName(r.Products, product),
		placed && len(r.Components) > 0 && !hasName(r.Components, component):
		return matchNo
	case len(r.Bugs) > 0 && bug == 0, len(r.Products)+len(r.Components) > 0 && !placed:
		return matchUnknown
	}
	return matchYes
}

func inRanges(ranges []Range, id int64) bool {
	for _, r := range ranges {
		if id >= r.From && (r.To == 0 || id <= r.To) {
			return true
		}
	}
	return false
}

// route is where one object of a call goes.
type route struct {
	object object
	// rule is the index of the one that decides.
	rule     int
	phase    Phase
	side     side
	followed bool
	// mayDecide are the rules that may decide: the one that does, as far as is known where the object is, and those before it that match if something
	// is there which could not be found out. Only writes have them.
	mayDecide []*Rule
	// absent says that no tracker has the object.
	absent bool
	// place is what was looked up of the object, or of the bug of an attachment.
	place mapping.Place
	// tried says which sides were asked in vain for the id of a bug that the call names by an alias.
	tried [2]bool
}

// bugID is the id of the bug that the object is or belongs to, 0 when it is not known.
func (r *route) bugID() int64 {
	if r.object.kind == bugObject && r.object.alias == "" {
		return r.object.id
	}
	return r.place.Bug
}

// isWriter reports whether a read goes to the tracker that has all writes of what it shows: it gets them now, and got a copy of all others before. Without
// copies no tracker is known to have all.
func (r *ruleSet) isWriter(chosen *route) bool {
	rule := &r.source.Rules[chosen.rule]
	return rule.Replicate && rule.Writes.side() == chosen.side
}

// route finds the first rule that surely matches an object by what was looked up of it so far, and what it has in common with those before it that
// may match. Where phases are the same, so is what becomes of a write besides.
func (info *callInfo) route(o *object, found *mapping.Place) (chosen route, samePhase, sameSide bool) {
	chosen, samePhase, sameSide = route{object: *o, place: *found}, true, true
	isWrite := info.operation.IsWrite()
	var first *Rule
	for i := range info.source.Rules {
		rule := &info.source.Rules[i]
		// Which callers are in a percentage takes longest to find out, so it comes last.
		is := rule.matchesObject(o, found)
		if is == matchNo || !info.matches(rule) {
			continue
		}
		chosen.rule, chosen.phase = i, rule.phase(info.operation)
		if first == nil {
			first = rule
		}
		if isWrite {
			chosen.mayDecide = append(chosen.mayDecide, rule)
		}
		phase := first.phase(info.operation)
		samePhase = samePhase && chosen.phase == phase && (!isWrite || rule.Replicate == first.Replicate && info.isMoving(rule) == info.isMoving(first))
		sameSide = sameSide && chosen.phase.side() == phase.side()
		if is == matchYes {
			break
		}
	}
	chosen.side = chosen.phase.side()
	return chosen, samePhase, sameSide
}
