package canary

import (
	"context"
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
	lasting := c.lasting(j, reference, candidate)
	before := j.first
	j.first, j.second = reference, candidate
	if len(lasting) == 0 {
		c.conclude(j, nil, kindReply, OutcomeTransient)
		return false
	}
	varied, reason := c.contradictions(ctx, j, reference)
	if reason != "" {
		c.drop(j.subject, reason)
		return false
	}
	judged := sift(lasting, varied, c.differences(j, before, reference))
	j.noisy = j.noisy || judged.noisy > 0
	outcome := OutcomeSame
	if judged.moved > 0 || len(lasting) < len(j.suspects) {
		outcome = OutcomeTransient
	}
	c.conclude(j, judged.confirmed, kindReply, outcome)
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
	if !j.took.known() {
		j.took = took{first.took, second.took}
	}
	return first.reply, second.reply, ""
}

// lasting gives what still differs at the places that were suspect.
func (c *Canary) lasting(j *job, reference, candidate Reply) []Difference {
	now := c.differences(j, reference, candidate)
	return slices.DeleteFunc(now, func(d Difference) bool {
		return d.Rule != "" || c.noise.known(j.reference, j.call.Operation, d, time.Now()) ||
			!slices.ContainsFunc(j.suspects, func(s Difference) bool { return s.Class == d.Class && s.Pointer == d.Pointer })
	})
}

// sifted is what lasting differences turn out to be.
type sifted struct {
	confirmed    []Difference
	noisy, moved int
}

// sift takes away what proves nothing: where the reference contradicts itself at
// once, which varied says, and where it has changed since the first time, as when
// the same object is written again and again before the candidate has it.
func sift(lasting, varied, changed []Difference) sifted {
	var s sifted
	for _, d := range lasting {
		switch {
		case slices.ContainsFunc(varied, func(v Difference) bool {
			return v.Rule == "" && v.Path == d.Path && familyOf(d.Class) != "" && familyOf(v.Class) == familyOf(d.Class)
		}):
			s.noisy++
		case mayMove(d.Class) && slices.ContainsFunc(changed, func(v Difference) bool { return v.Rule == "" && v.Pointer == d.Pointer }):
			s.moved++
		default:
			s.confirmed = append(s.confirmed, d)
		}
	}
	return s
}

// mayMove is true for what a candidate shows that is late: an older value, or none
// yet. What it leaves out, or writes as another type, it does whatever the value is.
func mayMove(class Class) bool { return familyOf(class) != "" || class == ClassNull }

// conclude ends a comparison: with confirmed differences, or without.
func (c *Canary) conclude(j *job, confirmed []Difference, kind string, otherwise Outcome) {
	if otherwise == OutcomeSame && j.noisy {
		otherwise = OutcomeNoisy
	}
	c.ledger.compared(j, c.found(j, confirmed, kind), otherwise)
}
