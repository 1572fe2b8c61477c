package recording

import (
	"context"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream/canary"
)

const (
	// enough is how often a difference is confirmed by asking again; after that it is believed.
	enough = 3
	// mostAsked is how often the tracker that is right is asked about a difference, until it says itself what the other one says.
	mostAsked = 6
)

// believed tells differences that were confirmed often enough.
func (p *player) believed(operation mapping.Operation, found []canary.Difference) bool {
	return !slices.ContainsFunc(found, func(d canary.Difference) bool {
		known := p.findings[d.Signature(operation)]
		return known == nil || known.Count < enough
	})
}

// confirm asks again. What has gone was in passing, and where the tracker that is right contradicts itself is noise. Against
// a recording there is only the other one to be asked, so that it is noise where that one does. reason is why nothing can be said.
func (p *player) confirm(ctx context.Context, e Exchange, first sides, found []canary.Difference) (confirmed []canary.Difference, noisy bool, reason string) {
	select {
	case <-ctx.Done():
		return nil, false, string(canary.DropClosed)
	case <-time.After(p.options.ConfirmAfter):
	}
	second := p.ask(ctx, e, first.operation)
	if second.reason != "" {
		return nil, false, second.reason
	}
	left := lasting(found, p.differences(second), sameOutcome(first.want, second.want))
	varied := p.contradictions(first.operation, first.have, second.have)
	if !first.againstTheRecordings {
		varied = p.contradictions(first.operation, first.want, second.want)
	}
	confirmed = canary.Steady(left, varied)
	for n := 1; n < mostAsked && len(confirmed) > 0 && !first.againstTheRecordings; n++ {
		again, err := p.send(ctx, p.options.Against, plainly(e.Request))
		if err == nil {
			again, err = decoded(again, first.operation, p.options.MaxBody)
		}
		if err != nil {
			break
		}
		varied = append(varied, p.contradictions(first.operation, second.want, replyOf(again))...)
		confirmed = canary.Steady(left, varied)
	}
	return confirmed, len(confirmed) < len(left), ""
}

// lasting gives what differs a second time at the same path. Where the tracker that is judged fails as a whole now, and the other
// one does as before, nobody can see the path, which excuses nothing.
func lasting(found, again []canary.Difference, steady bool) []canary.Difference {
	if steady && slices.ContainsFunc(again, isOfOutcome) && !slices.ContainsFunc(found, isOfOutcome) {
		return found
	}
	return slices.DeleteFunc(again, func(d canary.Difference) bool {
		return !slices.ContainsFunc(found, func(other canary.Difference) bool { return other.Path == d.Path })
	})
}

// isOfOutcome tells differences beside which nothing else is compared.
func isOfOutcome(d canary.Difference) bool {
	return d.Class == canary.ClassStatus || d.Class == canary.ClassCode || d.Class == canary.ClassFailure
}

func sameOutcome(one, other canary.Reply) bool {
	return one.Status == other.Status && one.Code == other.Code
}

// contradictions are the differences between two answers of one tracker.
func (p *player) contradictions(operation mapping.Operation, before, after canary.Reply) []canary.Difference {
	return canary.Compare(operation, before, after, p.options.Rules)
}
