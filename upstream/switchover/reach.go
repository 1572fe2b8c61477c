package switchover

import (
	"slices"
	"strings"

	"portico/mapping"
)

// reachMost is how many situations are looked at. Rules that tell apart more than
// that are checked in pairs only.
const reachMost = 1 << 14

// situation is one kind of call that the rules tell apart from others: who calls,
// and about what. The rules of one table divide all calls into a few of them.
type situation struct {
	product, component string
	bug, attachment    int64
	caller, agent      string
	// shares has a bit for each rule with a percentage that takes the caller.
	shares uint64
}

// elsewhere stands for every name that no rule has. No name of a tracker has
// such a character.
const elsewhere = "\x00"

// matches tells whether a rule takes a call of the situation about an object. bit
// is that of its percentage.
func (r *rule) matches(bit uint64, operation mapping.Operation, o object, s *situation) bool {
	known := facts{place: mapping.Place{Bug: s.bug, Product: s.product, Component: s.component}}
	return (r.operations == 0 || r.operations&operationBit(operation) != 0) &&
		(len(r.Callers) == 0 || slices.Contains(r.Callers, s.caller)) &&
		(len(r.agents) == 0 || r.agent(s.agent)) &&
		(r.Percent == nil || s.shares&bit != 0) &&
		r.place(&o, &known) == yes
}

// reach finds out which rules there are calls for.
type reach struct {
	rules   []rule
	bits    []uint64 // those of their percentages
	reached []bool
}

func newReach(rules []Rule) *reach {
	t := &reach{rules: make([]rule, len(rules)), bits: make([]uint64, len(rules)), reached: make([]bool, len(rules))}
	next := uint64(1)
	for i, given := range rules {
		t.rules[i].prepare(given)
		if given.Percent != nil {
			t.bits[i], next = next, next<<1
		}
	}
	return t
}

// first is the rule that takes a call, -1 when none does.
func (t *reach) first(operation mapping.Operation, o object, s *situation) int {
	for i := range t.rules {
		if t.rules[i].matches(t.bits[i], operation, o, s) {
			t.reached[i] = true
			return i
		}
	}
	return -1
}

// axes are the values that the rules tell apart, each with one for all others.
type axes struct {
	products, components, callers, agents []string
	bugs, attachments                     []int64
	// shares is how many rules with a percentage there are: each takes a caller or not.
	shares int
}

func axesOf(rules []Rule) axes {
	a := axes{
		products: []string{elsewhere}, components: []string{elsewhere}, callers: []string{""}, agents: []string{elsewhere},
		bugs: []int64{1}, attachments: []int64{1},
	}
	for _, r := range rules {
		a.products = append(a.products, lower(r.Products)...)
		a.components = append(a.components, lower(r.Components)...)
		a.callers = append(a.callers, r.Callers...)
		for _, text := range r.UserAgents {
			prefix, open := strings.CutSuffix(text, "*")
			if a.agents = append(a.agents, prefix); open {
				a.agents = append(a.agents, prefix+elsewhere)
			}
		}
		a.bugs, a.attachments = borders(a.bugs, r.Bugs), borders(a.attachments, r.Attachments)
		if r.Percent != nil {
			a.shares++
		}
	}
	for _, names := range []*[]string{&a.products, &a.components, &a.callers, &a.agents} {
		*names = distinct(*names)
	}
	a.bugs, a.attachments = distinct(a.bugs), distinct(a.attachments)
	return a
}

func lower(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strings.ToLower(strings.TrimSpace(name))
	}
	return all
}

// borders adds the ids at which ranges begin, and the first ones behind them.
func borders(ids []int64, ranges []Range) []int64 {
	for _, r := range ranges {
		if ids = append(ids, r.From); r.To != 0 {
			ids = append(ids, r.To+1)
		}
	}
	return ids
}

func distinct[T int64 | string](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

func (a *axes) size() int {
	size := 1
	for _, n := range []int{
		1 << min(a.shares, 30), len(a.products), len(a.components), len(a.callers), len(a.agents), len(a.bugs), len(a.attachments),
	} {
		if size *= n; size > reachMost {
			return size
		}
	}
	return size
}

// each goes through all situations.
func (a *axes) each(visit func(*situation)) {
	for n := range a.size() {
		var s situation
		s.product, n = pick(a.products, n)
		s.component, n = pick(a.components, n)
		s.caller, n = pick(a.callers, n)
		s.agent, n = pick(a.agents, n)
		s.bug, n = pick(a.bugs, n)
		s.attachment, n = pick(a.attachments, n)
		s.shares = uint64(n)
		visit(&s)
	}
}

// pick takes one digit of a number whose base is the length of a list.
func pick[T any](list []T, n int) (T, int) { return list[n%len(list)], n / len(list) }
