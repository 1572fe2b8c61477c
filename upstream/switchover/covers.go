package switchover

import (
	"math"
	"slices"
	"strings"
)

// covers tells whether every call that the later rule matches is matched by the
// earlier one. It never says so wrongly, but does not see every such pair. A
// percentage covers nothing, at 100 either: it is on its way up or down.
func covers(earlier, later Rule) bool {
	return coversAll(earlier.Products, later.Products, sameName) &&
		coversAll(earlier.Components, later.Components, sameName) &&
		coversAll(earlier.Operations, later.Operations, equal) &&
		coversAll(earlier.Callers, later.Callers, equal) &&
		coversAll(earlier.UserAgents, later.UserAgents, coversAgent) &&
		coversRanges(earlier.Bugs, later.Bugs) &&
		coversRanges(earlier.Attachments, later.Attachments) &&
		earlier.Percent == nil
}

// coversAll compares conditions that are lists. An empty one is no condition.
func coversAll[T any](earlier, later []T, covers func(earlier, later T) bool) bool {
	if len(earlier) == 0 || len(later) == 0 {
		return len(earlier) == 0
	}
	return !slices.ContainsFunc(later, func(one T) bool {
		return !slices.ContainsFunc(earlier, func(other T) bool { return covers(other, one) })
	})
}

func equal[T comparable](a, b T) bool { return a == b }

// sameName compares names as trackers do.
func sameName(a, b string) bool {
	return a == b || strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

func coversAgent(earlier, later string) bool {
	prefix, open := strings.CutSuffix(earlier, "*")
	if open {
		return strings.HasPrefix(strings.TrimSuffix(later, "*"), prefix)
	}
	return earlier == later
}

// coversRanges tells whether each later range lies within the earlier ones, which
// may touch or overlap.
func coversRanges(earlier, later []Range) bool {
	if len(earlier) == 0 || len(later) == 0 {
		return len(earlier) == 0
	}
	sorted := slices.Clone(earlier)
	slices.SortFunc(sorted, func(a, b Range) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		default:
			return 0
		}
	})
	return !slices.ContainsFunc(later, func(r Range) bool { return !within(r, sorted) })
}

// within walks along sorted ranges from the begin of one.
func within(r Range, sorted []Range) bool {
	next, end := r.From, last(r)
	for _, one := range sorted {
		if one.From > next {
			return false
		}
		if last(one) >= end {
			return true
		}
		next = max(next, last(one)+1)
	}
	return false
}

func last(r Range) int64 {
	if r.To == 0 {
		return math.MaxInt64
	}
	return r.To
}
