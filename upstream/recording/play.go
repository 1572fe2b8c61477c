package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/state"
)

// PlayOptions say against whom exchanges are played.
type PlayOptions struct {
	// Tracker is the base URL of the tracker that is judged.
	Tracker string
	// Against is that of the one which is right; empty means that the recorded answers are.
	Against string
	// Values are put in place of placeholders, by their names.
	Values map[string]string
	// Writes lets requests be made that change something.
	Writes bool
	// Only are names of exchanges or of operations that are played; * stands for any text. None means all.
	Only []string
	// Rules excuse differences.
	Rules canary.Rules
	// Target is the share of mismatches that is allowed, from 0 to 1; default 0.001.
	Target float64
	// Latency is how much slower than the tracker that is right the other one may be; the zero value is that of canary.
	Latency canary.LatencyTarget
	// Timeout is for each request; default 30 s.
	Timeout time.Duration
	// MaxBody is how many bytes of an answer are compared member by member, and longer ones by digest; default 64 MiB.
	MaxBody int64
	// ConfirmAfter is how long after a difference both are asked again; default 500 ms.
	ConfirmAfter time.Duration
	// Progress is told after each exchange how many are done.
	Progress func(done int)
}

// The names of sides that have none of their own.
const recordedSide = "the recording"

// Result is what came of playing.
type Result struct {
	// Report is in the form of the comparison's.
	Report canary.Report
	// Sent is how many exchanges were made, Skipped how many were not, by reason.
	Sent    int
	Skipped map[string]int
}

// Why exchanges are not played.
const (
	skipOther    = "not one of the seven operations"
	skipWrite    = "changes something, and --writes is not given"
	skipNotOnly  = "not asked for by --only"
	skipNoAnswer = "its answer is not recorded"
	skipNoKey    = "nothing is known for "
	skipDepends  = "its answer depends on a request that was not made"
)

// Play makes the requests of exchanges in their order and compares the answers. next gives the exchanges and io.EOF at the
// end. The result counts as far as it goes, also beside an error: of next, of ctx, or of a tracker that does not answer at all.
func Play(ctx context.Context, next func() (Exchange, error), o PlayOptions) (Result, error) {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, defaultBody)
	o.ConfirmAfter = cmp.Or(o.ConfirmAfter, 500*time.Millisecond)
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	p := &player{
		options: o, mask: newMasker(), redactor: canary.NewRedactor(), skipped: map[string]int{},
		tallies: map[mapping.Operation]*state.Tally{}, findings: map[string]*state.Finding{}, uses: map[string]*state.RuleUse{},
	}
	err := p.reach(ctx)
	if err == nil {
		err = p.all(ctx, next)
	}
	result := p.result()
	if err != nil {
		result.Report.Unfinished("the recording was not played to its end")
	}
	return result, err
}

// player plays one file.
type player struct {
	options  PlayOptions
	mask     *masker
	redactor *canary.Redactor
	sent     int
	skipped  map[string]int
	tallies  map[mapping.Operation]*state.Tally
	findings map[string]*state.Finding
	uses     map[string]*state.RuleUse
	lacking  lack
	// resettable tells the trackers whose data can be put back.
	resettable map[string]bool
}

func (p *player) bases() []string {
	if p.options.Against == "" {
		return []string{p.options.Tracker}
	}
	return []string{p.options.Against, p.options.Tracker}
}

// reach finds out whether the trackers answer at all, and which of them are reference trackers.
func (p *player) reach(ctx context.Context) error {
	p.resettable = map[string]bool{}
	for _, base := range p.bases() {
		if _, err := p.send(ctx, base, Request{Method: http.MethodGet, Path: "/rest/version"}); err != nil {
			return fmt.Errorf("the tracker cannot be reached: %w", err)
		}
		own, err := p.send(ctx, base, Request{Method: http.MethodGet, Path: "/_tracker/requests"})
		p.resettable[base] = err == nil && own.Status == http.StatusOK
	}
	return nil
}

func (p *player) send(ctx context.Context, base string, r Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	return send(ctx, base, r, p.options.MaxBody)
}

func (p *player) all(ctx context.Context, next func() (Exchange, error)) error {
	for done := 1; ; done++ {
		e, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.one(ctx, e); err != nil {
			return err
		}
		p.options.Progress(done)
	}
}

// one plays one exchange; the error is that of ctx.
func (p *player) one(ctx context.Context, e Exchange) error {
	if e.Reset && (!p.options.Writes || p.reset(ctx)) {
		p.lacking = lack{}
	}
	operation := OperationOf(e.Request.Method, e.Request.Path)
	reason := p.refusal(e, operation)
	request, err := e.Fill(p.options.Values)
	if missing, ok := errors.AsType[*MissingError](err); ok && reason == "" {
		reason = skipNoKey + strings.Join(missing.Names, ", ")
	} else if err != nil && reason == "" {
		reason = err.Error()
	}
	// Two trackers that are asked the same lack the same.
	if reason == "" && p.options.Against == "" && p.lacking.touches(e.Request, operation) {
		reason = skipDepends
	}
	if reason != "" {
		p.lacking.leave(e, reason)
		p.skipped[reason]++
		return ctx.Err()
	}
	p.sent++
	e.Request = request
	p.play(ctx, e, operation)
	return ctx.Err()
}

// refusal tells why an exchange is not played.
func (p *player) refusal(e Exchange, operation mapping.Operation) string {
	changes := !isRead(e.Request.Method)
	// With writes, everything is made that may have led to what is compared, such as a login.
	made := changes || p.options.Writes
	switch {
	case !p.wanted(e):
		return skipNotOnly
	case e.Unsendable != "":
		return e.Unsendable
	case changes && !p.options.Writes:
		return skipWrite
	case operation == "" && !made:
		return skipOther
	case p.options.Against == "" && e.Response == nil && !made:
		return skipNoAnswer
	}
	return ""
}

func (p *player) wanted(e Exchange) bool {
	return len(p.options.Only) == 0 || slices.ContainsFunc(p.options.Only, func(pattern string) bool {
		byName, _ := path.Match(pattern, e.Name) // a pattern that is none matches nothing
		byOperation, _ := path.Match(pattern, string(OperationOf(e.Request.Method, e.Request.Path)))
		return byName || byOperation
	})
}

// reset puts the data of reference trackers back, and tells whether it is that of the recording now.
func (p *player) reset(ctx context.Context) bool {
	back := true
	for _, base := range p.bases() {
		if !p.resettable[base] {
			p.skipped["the data of a tracker that is no reference tracker cannot be put back"]++
			back = false
			continue
		}
		_, err := p.send(ctx, base, Request{Method: http.MethodPost, Path: "/_tracker/reset", Body: []byte{}}) // what follows tells
		back = back && err == nil
	}
	return back
}

// result puts together what was found.
func (p *player) result() Result {
	p.time()
	input := canary.JudgeInput{At: time.Now().UTC(), Target: p.options.Target, Rules: p.options.Rules}
	input.Pair = upstream.Sides{Answered: cmp.Or(p.options.Against, recordedSide), Other: p.options.Tracker}
	for _, tally := range p.tallies {
		input.Tallies = append(input.Tallies, *tally)
	}
	for _, finding := range p.findings {
		input.Findings = append(input.Findings, *finding)
	}
	slices.SortFunc(input.Findings, func(a, b state.Finding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Signature, b.Signature))
	})
	for _, use := range p.uses {
		input.Uses = append(input.Uses, *use)
	}
	return Result{Report: canary.Judge(input), Sent: p.sent, Skipped: p.skipped}
}
