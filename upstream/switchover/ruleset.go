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

// ruleSet is what decides about calls: rules and settings, prepared for many decisions. It never
// changes but for its counts; a call that began with one ends with it.
type ruleSet struct {
	Settings
	// source is the table of the revision.
	source   Table
	revision state.Revision
	// killed is the kill in force: the stored one, or one that the store does not have yet.
	killed *Kill
	rules  []rule
	// everywhere is what rules could tell apart in all products.
	everywhere  []object
	passthrough PhasePair
	// home is the side that is asked first where something belongs: that of all
	// objects that only the last rule matches.
	home     side
	trackers [2]upstream.Tracker
	locators [2]Locator
	// current ends when another rule set is in force.
	current context.Context
	replace context.CancelFunc
}

// rule is a Rule with the number of its decisions for each side.
type rule struct {
	Rule
	hits [2]atomic.Int64
}

func newRuleSet(settings Settings, names [2]string, source Table, revision state.Revision, killed *Kill) *ruleSet {
	r := &ruleSet{Settings: settings, source: source, revision: revision, killed: killed, rules: make([]rule, len(source.Rules))}
	r.current, r.replace = context.WithCancel(context.Background())
	for side, name := range names {
		r.trackers[side], r.locators[side] = settings.Trackers[name], settings.Locate[name]
	}
	for i, given := range source.Rules {
		r.rules[i].Rule = given
	}
	r.everywhere = r.appendProduct(nil, "")
	for _, given := range source.Rules {
		for _, product := range given.Products {
			r.everywhere = r.appendProduct(r.everywhere, product)
		}
	}
	last := source.Rules[len(source.Rules)-1]
	r.home, r.passthrough = last.Reads.side(), PhasePair{last.Reads, last.Writes}
	if source.Passthrough != nil {
		r.passthrough = *source.Passthrough
	}
	if killed != nil {
		r.home, r.passthrough = oldSide, PhasePair{PhaseOld, PhaseOld}
	}
	return r
}

// names are those of all rules.
func (r *ruleSet) names() (names []string) {
	for i := range r.rules {
		names = append(names, r.rules[i].Name)
	}
	return names
}

// callInfo is what all objects of one call have in common.
type callInfo struct {
	caller    *upstream.Caller
	operation mapping.Operation
	// writeLookups counts the lookups of what earlier writes were about.
	writeLookups int
	// uncopied are writes of any caller that made what the call reads, and that are not copied yet.
	uncopied []written
}

// identity tells callers apart by all that they show to log in, wherever they call from. It stays in this process.
type identity [16]byte

func (c *callInfo) identity() identity {
	caller := *c.caller
	caller.Address = ""
	return caller.Identity()
}

// phase is the one that the rule has for an operation.
func (r *Rule) phase(operation mapping.Operation) Phase {
	if operation.IsWrite() {
		return r.Writes
	}
	return r.Reads
}

// matchesCall reports whether the conditions on operation and caller are met.
func (r *ruleSet) matchesCall(rule *Rule, info *callInfo) bool {
	return rule.matchesOperation(info.operation) &&
		(len(rule.Callers) == 0 || r.Caller != nil && slices.Contains(rule.Callers, r.Caller(*info.caller))) &&
		rule.matchesAgent(info.caller.UserAgent) &&
		(rule.Percent == nil || info.caller.Position(rule.Name) < *rule.Percent/100)
}

func (r *Rule) matchesOperation(operation mapping.Operation) bool {
	return len(r.Operations) == 0 || slices.Contains(r.Operations, operation)
}

func (r *Rule) matchesAgent(name string) bool {
	for _, text := range r.UserAgents {
		prefix, open := strings.CutSuffix(text, "*")
		if name == prefix || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return len(r.UserAgents) == 0
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
	switch {
	case o.kind == typesObject:
		product, component = o.product, o.component
	case o.kind == bugObject && o.alias == "":
		bug = o.id
	}
	if len(r.Attachments) > 0 && (o.kind != attachmentObject || !inRanges(r.Attachments, o.id)) {
		return matchNo
	}
	is := matchYes
	if len(r.Bugs) > 0 {
		switch {
		case o.kind == typesObject:
			return matchNo
		case bug == 0:
			is = matchUnknown
		case !inRanges(r.Bugs, bug):
			return matchNo
		}
	}
	if len(r.Products)+len(r.Components) > 0 {
		switch {
		case o.kind != typesObject && product == "":
			is = matchUnknown
		case len(r.Products) > 0 && !hasName(r.Products, product), len(r.Components) > 0 && !hasName(r.Components, component):
			return matchNo
		}
	}
	return is
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

// agreement is what the rules that may match an object have in common: the first one that surely does, and those
// before it that may. Where phases are the same, so is what becomes of a write besides.
type agreement struct {
	samePhase, sameSide bool
}

// candidates are the rules that may decide about objects of a write, as far as is known where they are.
func (r *ruleSet) candidates(info *callInfo, routes []route) (found []*Rule) {
	for i := range routes {
		one := &routes[i]
		for k := range r.rules[:one.rule+1] {
			rule := &r.rules[k].Rule
			may := k == one.rule || r.killed == nil && rule.matchesObject(&one.object, &one.place) != matchNo && r.matchesCall(rule, info)
			if may && !slices.Contains(found, rule) {
				found = append(found, rule)
			}
		}
	}
	return found
}

// isWriter reports whether a read goes to the tracker that has all writes of what it shows: it gets them now, and got a copy of all others before. Without
// copies no tracker is known to have all.
func (r *ruleSet) isWriter(chosen *route) bool {
	rule := &r.rules[chosen.rule].Rule
	return rule.Replicate && rule.Writes.side() == chosen.side
}

// holds reports whether writes that a rule decides wait for other rules. A kill that the store does not have yet holds nothing.
func (r *ruleSet) holds(rule *Rule) bool {
	return r.killed == r.source.Killed && slices.Contains(r.source.Moving, rule.Name)
}

// route finds the first rule that surely matches an object by what was looked up of it so far.
func (r *ruleSet) route(info *callInfo, o *object, found *mapping.Place) (chosen route, among agreement) {
	chosen, among = route{object: *o, place: *found}, agreement{true, true}
	var first *Rule
	for i := range r.rules {
		rule := &r.rules[i].Rule
		// Which callers are in a percentage takes longest to find out, so it comes last.
		is := rule.matchesObject(o, found)
		if is == matchNo || !r.matchesCall(rule, info) {
			continue
		}
		chosen.rule, chosen.phase = i, rule.phase(info.operation)
		if first == nil {
			first = rule
		}
		phase := first.phase(info.operation)
		among.samePhase = among.samePhase && chosen.phase == phase &&
			(!info.operation.IsWrite() || rule.Replicate == first.Replicate && r.holds(rule) == r.holds(first))
		among.sameSide = among.sameSide && chosen.phase.side() == phase.side()
		if is == matchYes {
			break
		}
	}
	chosen.side = chosen.phase.side()
	return chosen, among
}
