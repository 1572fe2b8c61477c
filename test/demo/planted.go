package demo

import (
	"fmt"
	"slices"
	"strings"

	"portico/test/tracker"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// Difference is one of the differences between the trackers of the demo.
type Difference struct {
	Quirk tracker.Quirk
	// What says what differs, and Why what the comparison has to do with it.
	What, Why string

	isSeen func(verdict.Report) bool
	// class and end are the class and the end of the path of its findings; without a class it has none.
	class compare.Class
	end   string
}

// IsSeen reports whether the difference is in a report.
func (d Difference) IsSeen(report verdict.Report) bool {
	if d.isSeen != nil {
		return d.isSeen(report)
	}
	return slices.ContainsFunc(report.Findings, d.covers)
}

func (d Difference) covers(f state.Finding) bool {
	return d.class != "" && f.Class == string(d.class) && strings.HasSuffix(f.Path, d.end) &&
		// A value that is missing from a list has the class of a missing field.
		(d.end != "" || !strings.HasSuffix(f.Path, valuesOfGroups))
}

// valuesOfGroups ends the path of what members of some groups may set.
const valuesOfGroups = ".values[*]"

// Planted returns all differences.
func Planted() []Difference {
	return []Difference{
		{Quirk: tracker.QuirkMissingField, class: compare.ClassMissing,
			What: "flag types lack is_multiplicable, attachments lack creator", Why: "a client that reads the field fails"},
		{Quirk: tracker.QuirkChangedType, class: compare.ClassType,
			What: "the id of flag types and the size of attachments are text", Why: "a client that computes with the number fails"},
		{Quirk: tracker.QuirkReordered, class: compare.ClassOrder,
			What: "lists are in reverse order", Why: "a client that takes the first element gets another one"},
		{Quirk: tracker.QuirkWrongGroupValues, class: compare.ClassMissing, end: valuesOfGroups,
			What: "the group staff may not set - on flags", Why: "only requests of members of this group show it"},
		{Quirk: tracker.QuirkSlow, class: compare.ClassLatency,
			What: "each read takes 200 ms more", Why: "equal responses that come too late are a difference too"},
		{Quirk: tracker.QuirkLag, isSeen: func(r verdict.Report) bool { return r.Overall.Transient > 0 },
			What: "writes are seen 300 ms late", Why: "it goes away by itself, so it must count as transient and not as a finding"},
		{Quirk: tracker.QuirkVolatile, isSeen: func(r verdict.Report) bool { return r.Overall.Noisy > 0 },
			What: "both trackers add a field, served_as, that is different each time", Why: "it must count as noise and not as a finding"},
	}
}

// Conclude says in plain words whether a report has what is planted and nothing else.
func Conclude(report verdict.Report) (text string, exactly bool) {
	planted := Planted()
	var b strings.Builder
	found := len(planted)
	for _, d := range planted {
		if !d.IsSeen(report) {
			found--
			fmt.Fprintf(&b, "Not found: %s (%s).\n", d.Quirk, d.What)
		}
	}
	exactly = found == len(planted)
	if !exactly {
		fmt.Fprintf(&b, "Found %d of %d planted differences. Some need more requests: try --drive 600.\n", found, len(planted))
	}
	for _, f := range report.Findings {
		if !slices.ContainsFunc(planted, func(d Difference) bool { return d.covers(f) }) {
			exactly = false
			fmt.Fprintf(&b, "Found, but not planted: %s %s of %s.\n", f.Class, f.Path, f.Operation)
		}
	}
	if exactly {
		fmt.Fprintf(&b, "Found all %d planted differences, and nothing else.\n", found)
	}
	return b.String(), exactly
}
