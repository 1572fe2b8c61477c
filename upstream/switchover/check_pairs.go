package switchover

import (
	"slices"
	"strings"

	"portico/mapping"
)

// covers reports whether every call that the later rule matches is matched by the
// earlier one. It never says so wrongly, but does not see every such pair. A
// percentage covers nothing, at 100 either: it is on its way up or down.
func covers(earlier, later Rule) bool {
	if slices.Contains(earlier.UserAgents, "*") {
		earlier.UserAgents = nil
	}
	if coversAll(earlier.Operations, mapping.Operations(), equal) {
		earlier.Operations = nil
	}
	return earlier.Percent == nil &&
		coversAll(earlier.Products, later.Products, sameName) && coversAll(earlier.Components, later.Components, sameName) &&
		coversAll(earlier.Operations, later.Operations, equal) && coversAll(earlier.Callers, later.Callers, equal) &&
		coversAll(earlier.UserAgents, later.UserAgents, coversAgent) &&
		coversAll(earlier.Bugs, later.Bugs, coversRange) && coversAll(earlier.Attachments, later.Attachments, coversRange)
}

// coversAll compares conditions that are lists, member by member. An empty one is no condition.
func coversAll[T any](earlier, later []T, covers func(a, b T) bool) bool {
	uncovered := func(one T) bool {
		return !slices.ContainsFunc(earlier, func(other T) bool { return covers(other, one) })
	}
	return len(earlier) == 0 || len(later) > 0 && !slices.ContainsFunc(later, uncovered)
}

func equal[T comparable](a, b T) bool { return a == b }

func coversAgent(a, b string) bool {
	prefix, open := strings.CutSuffix(a, "*")
	return a == b || open && strings.HasPrefix(b, prefix)
}

func coversRange(a, b Range) bool {
	return startsIn(a, b) && (a.To == 0 || b.To != 0 && b.To <= a.To)
}

func startsIn(a, b Range) bool { return inRanges([]Range{a}, b.From) }

// common lists the members of two conditions that meet both of them, or one other value where there is no condition.
func common[T any](a, b []T, covers func(a, b T) bool, other T) (both []T) {
	if len(a)+len(b) == 0 {
		return []T{other}
	}
	for _, one := range slices.Concat(a, b) {
		if coversAll(a, []T{one}, covers) && coversAll(b, []T{one}, covers) {
			both = append(both, one)
		}
	}
	return both
}

// sample is a call that may be made: by which caller, and about what.
type sample struct {
	// shares are the two rules in whose percentages the caller is.
	shares        [2]int
	caller, agent string
	place         mapping.Place
	attachment    int64
}

// samples are calls that meet the conditions of two rules, but for operations. Each member of
// their lists is in one of them.
func (c *checker) samples(i, k int) []sample {
	a, b := c.rules[i], c.rules[k]
	products, components := common(a.Products, b.Products, sameName, "\x00"), common(a.Components, b.Components, sameName, "")
	callers, agents := common(a.Callers, b.Callers, equal, ""), common(a.UserAgents, b.UserAgents, coversAgent, "")
	bugs := common(a.Bugs, b.Bugs, startsIn, Range{From: 1})
	attachments := common(a.Attachments, b.Attachments, startsIn, Range{From: 1})
	lengths := []int{len(products), len(components), len(callers), len(agents), len(bugs), len(attachments)}
	if slices.Contains(lengths, 0) {
		return nil
	}
	all := make([]sample, slices.Max(lengths))
	for n := range all {
		all[n] = sample{
			shares: [2]int{i, k}, caller: nth(callers, n), agent: strings.TrimSuffix(nth(agents, n), "*"),
			place:      mapping.Place{Bug: nth(bugs, n).From, Product: nth(products, n), Component: nth(components, n)},
			attachment: nth(attachments, n).From,
		}
	}
	return all
}

// nth gives a member of a list, which begins anew at its end.
func nth[T any](list []T, n int) T { return list[n%len(list)] }

// twoTrackers are two rules of which one writes at the new tracker what the other one reads or writes at the old one.
type twoTrackers struct {
	writer, other int
	isWrite       bool
}

// pairs looks at two rules at a time: whether what is written at the new tracker is read, or written by another operation, at the
// old one. It lets the whole list decide sample calls, so that what it finds is there; it does not find everything.
func (c *checker) pairs() {
	const maxMatches = 2_000_000 // of sample calls with rules, for each relation; a second or so
	left := maxMatches / len(c.rules)
	found := map[twoTrackers]relation{}
	for k, b := range c.rules {
		for i, a := range c.rules[:k] {
			if !a.Writes.New() && !b.Writes.New() {
				continue
			}
			for _, s := range c.samples(i, k) {
				left--
				if left < 0 {
					break
				}
				for _, r := range relations(&s) {
					two := twoTrackers{s.decide(c.rules, r.write, r.written), s.decide(c.rules, r.other, r.shown), r.other.IsWrite()}
					isNew := c.rules[two.other].phase(r.other).New()
					if known, ok := found[two]; c.rules[two.writer].Writes.New() && !isNew && (!ok || known.part != "") {
						found[two] = r
					}
				}
			}
		}
	}
	for two, r := range found {
		c.report(two, r)
	}
	if left < 0 {
		c.at = -1
		c.warn("", "the rules overlap so much that not all of them were compared with each other")
	}
}

// report adds the problem that two rules have with each other.
func (c *checker) report(two twoTrackers, r relation) {
	c.at = two.writer
	switch other := c.rules[two.other].Name; {
	case two.isWrite:
		c.warn("writes", "%s goes to the new tracker, and other writes of the same objects to the old one, by rule %d (%q), so one object can be written in both trackers",
			r.write, two.other+1, other)
	case r.part != "":
		c.warn("writes", "%s is read at the old tracker, by rule %d (%q): others do not see there what this rule writes", r.part, two.other+1, other)
	default:
		c.add("reads", "reads are behind writes: what this rule writes at the new tracker is read at the old one, by rule %d (%q)", two.other+1, other)
	}
}

// decide finds the rule for a sample call.
func (s *sample) decide(rules []Rule, operation mapping.Operation, o object) int {
	label := func() string { return s.caller }
	for i := range rules {
		r := &rules[i]
		if r.meets(operation, s.agent, label) && (r.Percent == nil || slices.Contains(s.shares[:], i)) && r.matchesObject(&o, &s.place) == matchYes {
			return i
		}
	}
	return len(rules) - 1
}
