package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream/canary"
	"portico/upstream/state"
)

// sides are the two answers to one request.
type sides struct {
	want, have           canary.Reply
	wantTook, haveTook   time.Duration
	recordedAt           time.Time
	reason               string
	operation            mapping.Operation
	againstTheRecordings bool
	// unmade says that the tracker that is right could not be asked.
	unmade bool
}

// play makes one request and compares.
func (p *player) play(ctx context.Context, e Exchange, operation mapping.Operation) {
	first := p.ask(ctx, e, operation)
	if operation == "" || first.reason == skipNoAnswer || ctx.Err() != nil {
		return // it was made for what it changes
	}
	tally := p.tally(operation)
	if first.reason != "" {
		tally.Dropped[first.reason]++
		return
	}
	tally.Compared++
	if first.wantTook > 0 {
		tally.AnsweredLatency = counted(tally.AnsweredLatency, first.wantTook)
		tally.OtherLatency = counted(tally.OtherLatency, first.haveTook)
	}
	found := p.differences(first)
	if len(found) == 0 {
		tally.Same++
		return
	}
	confirmed, noisy, reason := found, false, ""
	if isRead(e.Request.Method) && !p.believed(operation, found) {
		confirmed, noisy, reason = p.confirm(ctx, e, first, found)
	}
	if ctx.Err() != nil { // what was asked last has no answer that says anything
		reason = string(canary.DropClosed)
	}
	switch {
	case reason != "":
		tally.Compared--
		tally.Dropped[reason]++
	case len(confirmed) > 0:
		tally.Confirmed++
		tally.Mismatch(p.record(e, operation, confirmed), 1)
	case noisy && slices.ContainsFunc(found, isOfWhole): // behind which anything may be
		tally.Compared--
		tally.Dropped[string(canary.DropDigestNoise)]++
	case noisy:
		tally.Noisy++
	default:
		tally.Transient++
	}
}

// isOfWhole tells the difference of answers of which only the digests are known.
func isOfWhole(d canary.Difference) bool { return d.Class == canary.ClassDigest && d.Path == "$" }

// ask gets both answers.
func (p *player) ask(ctx context.Context, e Exchange, operation mapping.Operation) sides {
	s := sides{operation: operation, againstTheRecordings: p.options.Against == ""}
	if operation != "" {
		e.Request = plainly(e.Request)
	}
	if s.reason = p.askRight(ctx, e, &s); s.unmade {
		return s
	}
	began := time.Now()
	answer, err := p.send(ctx, p.options.Tracker, e.Request)
	s.haveTook = time.Since(began)
	if err == nil {
		if answer, err = decoded(answer, operation, p.options.MaxBody); err != nil && !errors.Is(err, errEndless) {
			s.reason = cmp.Or(s.reason, string(canary.DropCandidateFailed))
			return s
		}
	}
	s.have = replyOf(answer)
	switch {
	case errors.Is(err, errEndless):
		s.have = canary.Reply{Failure: "endless"}
	case err != nil:
		s.have = canary.Reply{Failure: string(mapping.ReasonUnreachable)}
	case !s.againstTheRecordings && !isAnswer(e.Request, answer, s.have):
		s.have = canary.Reply{Failure: string(mapping.ReasonBadAnswer)}
	case s.againstTheRecordings && e.Response != nil && incomparable(*e.Response):
		s.want.Body, s.want.Digest, s.have.Body, s.have.Digest = nil, nil, nil, nil
	}
	return s
}

// askRight gets the answer that is right, or says why there is none. Where it cannot be read the request is made of the other
// tracker all the same: it may change something, and what follows is compared.
func (p *player) askRight(ctx context.Context, e Exchange, s *sides) (reason string) {
	if !s.againstTheRecordings {
		return p.askOther(ctx, e, s)
	}
	if e.Response == nil {
		return skipNoAnswer
	}
	s.recordedAt = dateOf(*e.Response)
	answer, err := decoded(*e.Response, s.operation, p.options.MaxBody)
	if err != nil || answer.HTML && answer.Status >= http.StatusInternalServerError {
		return string(canary.DropUnreadable)
	}
	s.want = replyOf(answer)
	return ""
}

// askOther asks the tracker that is right.
func (p *player) askOther(ctx context.Context, e Exchange, s *sides) (reason string) {
	began := time.Now()
	answer, err := p.send(ctx, p.options.Against, e.Request)
	s.wantTook = time.Since(began)
	if s.unmade = err != nil && !errors.Is(err, errEndless); err != nil {
		return string(canary.DropOtherFailed)
	}
	if answer, err = decoded(answer, s.operation, p.options.MaxBody); err != nil {
		return string(canary.DropUnreadable)
	}
	if s.want = replyOf(answer); !isAnswer(e.Request, answer, s.want) {
		return string(canary.DropOtherFailed)
	}
	return ""
}

// differences compares two answers, and counts the rules that excuse some.
func (p *player) differences(s sides) []canary.Difference {
	want, have := s.want, s.have
	if s.againstTheRecordings {
		want, have = p.mask.pair(want, have)
	}
	var found []canary.Difference
	for _, d := range canary.Compare(s.operation, want, have, p.options.Rules) {
		switch {
		case d.Rule != "":
			p.used(d.Rule)
		case s.againstTheRecordings && isOfTheRecording(d, s.recordedAt):
		default:
			found = append(found, d)
		}
	}
	return found
}

// isOfTheRecording tells times at which something happened while the recording was made: they cannot come again.
func isOfTheRecording(d canary.Difference, recordedAt time.Time) bool {
	if d.Class != canary.ClassTime || recordedAt.IsZero() {
		return false
	}
	text, err := jsontext.AppendUnquote(nil, d.Want)
	if err != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(text))
	return err == nil && at.Sub(recordedAt).Abs() < 24*time.Hour
}

func dateOf(recorded Response) time.Time {
	at, _ := time.Parse(time.RFC1123, recorded.Headers["date"]) // the zero time means that it is not known
	return at
}

func (p *player) tally(operation mapping.Operation) *state.Tally {
	t := p.tallies[operation]
	if t == nil {
		t = &state.Tally{At: time.Now().UTC().Truncate(time.Minute), Operation: operation, Dropped: map[string]int64{}}
		p.tallies[operation] = t
	}
	return t
}

func (p *player) used(rule string) {
	u := p.uses[rule]
	if u == nil {
		u = &state.RuleUse{Name: rule}
		p.uses[rule] = u
	}
	u.Hits++
	u.Last = time.Now().UTC()
}

// record notes each kind of difference once for an exchange, and gives their signatures.
func (p *player) record(e Exchange, operation mapping.Operation, confirmed []canary.Difference) []string {
	now := time.Now().UTC()
	counted := map[string]bool{}
	for _, d := range confirmed {
		signature := d.Signature(operation)
		if counted[signature] {
			continue
		}
		counted[signature] = true
		f := p.findings[signature]
		if f == nil {
			f = &state.Finding{
				Signature: signature, Operation: operation, Class: string(d.Class), Path: d.Path, Kind: "reply",
				Status: state.StatusOpen, First: now, Changed: now, Note: p.note(e, d),
			}
			p.findings[signature] = f
		}
		f.Count++
		f.Last = now
	}
	return slices.Collect(maps.Keys(counted))
}

// time judges how long the trackers took.
func (p *player) time() {
	now := time.Now().UTC()
	for operation, tally := range p.tallies {
		d, slower := p.options.Latency.Slower(tally.AnsweredLatency, tally.OtherLatency)
		if !slower {
			continue
		}
		signature := d.Signature(operation)
		p.findings[signature] = &state.Finding{
			Signature: signature, Operation: operation, Class: string(d.Class), Path: d.Path, Kind: "latency", Count: 1,
			Status: state.StatusOpen, First: now, Last: now, Changed: now, Note: fmt.Sprintf("%s ms became %s ms", d.Want, d.Have),
		}
	}
}

// note says where a difference was first seen, and what it was as far as that may be shown.
func (p *player) note(e Exchange, d canary.Difference) string {
	show := func(value jsontext.Value) string {
		text := string(p.redactor.Redact(value, d.Path))
		switch {
		case text == "":
			return "nothing"
		case len(text) > 80:
			return text[:80] + "…"
		}
		return text
	}
	return fmt.Sprintf("first in %s at %s: %s became %s", e.Name, d.Pointer, show(d.Want), show(d.Have))
}

// counted adds a duration to a histogram.
func counted(histogram []int64, took time.Duration) []int64 {
	if histogram == nil {
		histogram = make([]int64, len(canary.LatencyBounds())+1)
	}
	histogram[canary.LatencyBucket(took)]++
	return histogram
}
