package canary

import (
	"context"
	"maps"
	"slices"
	"time"
)

// putAside lets a job wait until its difference may have gone.
func (c *Canary) putAside(j *job) bool {
	if j.said != nil {
		j.said.release()
	}
	c.memory.give(j.held)
	j.said, j.clientReply, j.held = nil, nil, 0
	switch {
	case !c.confirms.Allow():
		c.drop(j.subject, DropConfirmLimit)
	case !c.hold(j, int64(len(j.first.Body)+len(j.second.Body))):
		c.drop(j.subject, DropMemory)
	case !c.later(j, c.options.ConfirmAfter, (*Canary).confirm):
		c.drop(j.subject, DropConfirmFull)
	default:
		return true
	}
	return false
}

// confirm asks both again. The client's answer may have come from a cache, or been
// older than a write; now both are asked by the comparison alone.
func (c *Canary) confirm(ctx context.Context, j *job) bool {
	reference, candidate, reason := c.askBoth(ctx, j)
	if reason != "" {
		c.drop(j.subject, reason)
		return false
	}
	if candidate.isBroken() && !j.second.isBroken() && !reference.isBroken() {
		c.drop(j.subject, DropCandidateFailed) // what differed may be gone or not
		return false
	}
	left := c.leftOf(j, reference, candidate)
	before := j.first
	j.failed = j.second.isBroken() && !before.isBroken()
	j.first, j.second, j.noisy = reference, candidate, j.noisy || left.noisy > 0
	if len(left.lasting) == 0 {
		c.conclude(j, nil, kindReply, left.outcome())
		return false
	}
	judged, reason := c.doubt(ctx, j, left.lasting, c.contradictions(j, before, reference))
	if reason != "" {
		c.drop(j.subject, reason)
		return false
	}
	j.noisy, left.gone = j.noisy || judged.noisy > 0, left.gone+judged.moved
	c.conclude(j, judged.confirmed, kindReply, left.outcome())
	return false
}

// askBoth asks the reference and then the candidate.
func (c *Canary) askBoth(ctx context.Context, j *job) (reference, candidate Reply, reason DropReason) {
	digest := j.first.Digest != nil || j.second.Digest != nil
	first := c.ask(ctx, j, j.reference, digest)
	if first.reason != "" {
		return Reply{}, Reply{}, first.reason
	}
	second := c.ask(ctx, j, j.candidate, digest)
	if second.reason != "" {
		return Reply{}, Reply{}, second.reason
	}
	if j.paired = (took{first.took, second.took}); !j.took.known() {
		j.took = j.paired
	}
	return first.reply, second.reply, ""
}

// remainder is what has become of the differences that were suspect.
type remainder struct {
	lasting []Difference
	// noisy are those that were learnt to be noise meanwhile.
	noisy, gone int
}

// outcome is that of a comparison of which nothing is confirmed.
func (r remainder) outcome() Outcome {
	if r.gone > 0 {
		return OutcomeTransient
	}
	return OutcomeSame
}

// leftOf compares the second answers at the places that were suspect in the first.
func (c *Canary) leftOf(j *job, reference, candidate Reply) remainder {
	type place struct {
		class   Class
		pointer string
	}
	now := map[place]Difference{}
	for _, d := range c.differences(j, reference, candidate) {
		if d.Rule == "" {
			now[place{d.Class, d.Pointer}] = d
		}
	}
	var left remainder
	isNoise := c.isNoise(j)
	hidden := hiding(j.first, reference, slices.DeleteFunc(slices.Collect(maps.Values(now)), isNoise))
	for _, s := range j.suspects {
		d, there := now[place{s.Class, s.Pointer}]
		switch {
		case isNoise(s) || there && isNoise(d):
			left.noisy++
		case there:
			left.lasting = append(left.lasting, d)
		case hidden(s):
			left.lasting = append(left.lasting, s)
		default:
			left.gone++
		}
	}
	return left
}

// hiding tells of which differences nobody can see whether they have gone, since the
// candidate now refuses where the reference says what it said before: that makes
// nothing of it better.
func hiding(before, reference Reply, now []Difference) func(Difference) bool {
	otherwise := slices.ContainsFunc(now, isOfOutcome)
	same := before.Status == reference.Status && before.Code == reference.Code && before.Failure == reference.Failure
	return func(d Difference) bool { return same && otherwise && !isOfOutcome(d) }
}

func isOfOutcome(d Difference) bool { return d.Class == ClassStatus || d.Class == ClassCode }

// mostAsked is how often the reference is asked about a difference whose signature
// is new, until it says itself what the candidate says. What it says every other
// time, it then fails to say once in 64 times.
const mostAsked = 6

// doubt asks the reference once more about what lasts, or several times where a
// signature is new, and says what the differences turn out to be.
func (c *Canary) doubt(ctx context.Context, j *job, lasting, changed []Difference) (sifted, DropReason) {
	varied, last := map[varies]bool{}, j.first
	for n := 1; ; n++ {
		next, ways, reason := c.askAgain(ctx, j, last)
		if reason != "" {
			return sifted{}, reason
		}
		maps.Copy(varied, ways)
		judged := sift(lasting, varied, changed)
		if !c.noise.doubted(j.operation, judged.confirmed, time.Now()) {
			return judged, ""
		}
		if n == mostAsked {
			c.noise.believe(j.operation, judged.confirmed, time.Now())
			return judged, ""
		}
		last = next
	}
}

// sifted is what lasting differences turn out to be.
type sifted struct {
	confirmed    []Difference
	noisy, moved int
}

// sift takes away what proves nothing: where the reference contradicts itself at
// once, which varied says, and where it has changed since the first time, as when
// the same object is written again and again before the candidate has it.
func sift(lasting []Difference, varied map[varies]bool, changed []Difference) sifted {
	elsewhere := map[string]bool{}
	for _, d := range changed {
		if d.Rule == "" {
			elsewhere[d.Pointer] = true
		}
	}
	var s sifted
	for _, d := range lasting {
		switch {
		case varied[d.variesAs()]:
			s.noisy++
		case mayMove(d.Class) && elsewhere[d.Pointer]:
			s.moved++
		default:
			s.confirmed = append(s.confirmed, d)
		}
	}
	return s
}

// mayMove is true for what a candidate shows that is late: an older value, or none
// yet. What it leaves out, or writes as another type, it does whatever the value is.
func mayMove(class Class) bool {
	switch class {
	case ClassValue, ClassTime, ClassOrder, ClassSet, ClassMessage, ClassHeader, ClassDigest, ClassNull:
		return true
	default:
		return false
	}
}

// conclude ends a comparison: with confirmed differences, or without. Noise in a whole
// answer may hide anything, so that one is no comparison.
func (c *Canary) conclude(j *job, confirmed []Difference, kind string, otherwise Outcome) {
	if len(j.planned)+len(confirmed) == 0 && j.provesNothing() {
		c.drop(j.subject, DropDigestNoise)
		return
	}
	if otherwise == OutcomeSame && (j.noisy || j.differentForm) {
		otherwise = OutcomeNoisy
	}
	c.ledger.compared(j, append(j.planned, c.found(j, confirmed, kind)...), otherwise)
}

// provesNothing tells whether two digests differ, which is all that is known.
func (j *job) provesNothing() bool {
	first, second := j.first.Digest, j.second.Digest
	return first != nil && second != nil && first.SHA256 != second.SHA256
}
