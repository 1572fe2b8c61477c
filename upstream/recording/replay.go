package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// ReplayOptions say to which trackers requests are sent, and how responses are compared.
type ReplayOptions struct {
	// Tracker is the base URL of the candidate.
	Tracker string
	// Against is that of the reference; empty means that the recorded responses are the reference.
	Against string
	// Values are put in place of placeholders, by their names.
	Values map[string]string
	// Writes lets requests be sent that change something.
	Writes bool
	// Only are names of exchanges or of operations that are replayed; * stands for any text. None means all.
	Only []string
	// Rules excuse differences.
	Rules compare.Rules
	// Target is the share of mismatches that is allowed, from 0 to 1; default 0.001.
	Target float64
	// Latency is how much slower than the reference the candidate may be; the zero value is that of canary.
	Latency verdict.LatencyTarget
	// Timeout is for each request and must be positive.
	Timeout time.Duration
	// MaxBody is the maximum size of a response in bytes; default 256 MiB.
	MaxBody int64
	// ConfirmAfter is how long after a difference both are asked again.
	ConfirmAfter time.Duration
	// Progress is called after each exchange with how many are done.
	Progress func(done int)
}

// Result is what came of a replay.
type Result struct {
	// Report is in the form of the comparison's.
	Report verdict.Report
	// Sent is how many requests were sent, Skipped how many were not, by reason.
	Sent    int
	Skipped map[string]int
	// Moved is how many requests had a credential in a header, which a tracker does not read, and were sent with it in the query.
	Moved int
}

// Why requests are not sent.
const (
	skipOther    = "not one of the seven operations"
	skipWrite    = "changes something, and --writes is not given"
	skipNotOnly  = "not asked for by --only"
	skipNoAnswer = "its response is not recorded"
	skipDepends  = "its response depends on a request that was not made"
	skipReset    = "the data of a tracker that is no reference tracker cannot be put back"
)

// Replay sends the requests of exchanges in their order and compares the responses. next gives the exchanges and io.EOF at the
// end. The result counts as far as it goes, also beside an error: of next, of ctx, or of a tracker that does not respond at all.
func Replay(ctx context.Context, next func() (Exchange, error), o ReplayOptions) (Result, error) {
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	r := &replay{
		ReplayOptions: o, redactor: compare.NewRedactor(), result: Result{Skipped: map[string]int{}}, readsHeaders: map[string]bool{},
		tallies: map[mapping.Operation]*state.Tally{}, findings: map[string]state.Finding{}, uses: map[string]state.RuleUse{},
	}
	if !r.isRecorded() {
		r.trackers = append(r.trackers, o.Against)
	}
	r.trackers = append(r.trackers, o.Tracker)
	err := r.reach(ctx)
	for done := 1; err == nil; done++ {
		var e Exchange
		if e, err = next(); err == nil {
			err = r.one(ctx, e)
		}
		if err == nil && o.Progress != nil {
			o.Progress(done)
		}
	}
	r.report()
	if errors.Is(err, io.EOF) {
		return r.result, nil
	}
	r.result.Report.Unfinished("the recording was not played to its end")
	return r.result, err
}

// replay is the replay of one file. It is not for concurrent use.
type replay struct {
	ReplayOptions
	trackers []string // their base URLs
	result   Result
	redactor *compare.Redactor
	tallies  map[mapping.Operation]*state.Tally
	findings map[string]state.Finding
	uses     map[string]state.RuleUse
	missing  missing
	// readsHeaders has the trackers that take credentials from headers.
	readsHeaders map[string]bool
	// withoutMessages says that the recording leaves out the texts of messages. Where it has one nevertheless, as in the frame of a
	// callback, it was overlooked.
	withoutMessages bool
}

// isRecorded reports whether the recorded responses are the reference.
func (r *replay) isRecorded() bool { return r.Against == "" }

// reach finds out whether the trackers respond at all, and which of them take credentials from headers.
func (r *replay) reach(ctx context.Context) error {
	for _, base := range r.trackers {
		version, err := r.send(ctx, base, Request{Method: http.MethodGet, Path: "/rest/version"})
		if err != nil {
			return &url.Error{Op: "Get", URL: base, Err: err}
		}
		members, _ := mapping.ParseMembers(version.Body) // a version that is not known reads none
		r.readsHeaders[base] = mapping.DialectOfVersion(textOf(members.Get("version"))).HeaderCredentials
	}
	return nil
}

func (r *replay) send(ctx context.Context, base string, request Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return Send(ctx, base, request, r.MaxBody)
}

// one replays one exchange; the error is that of ctx.
func (r *replay) one(ctx context.Context, e Exchange) error {
	if e.Reset && (!r.Writes || r.reset(ctx)) {
		r.missing = missing{}
	}
	e.Operation = OperationOf(e.Request.Method, e.Request.Path)
	request, err := e.Fill(r.Values)
	if reason := r.refusal(e, err); reason != "" {
		r.missing.add(e, reason)
		r.result.Skipped[reason]++
		return ctx.Err()
	}
	r.result.Sent++
	e.Request = request
	if _, found := keysInQuery(e); found && slices.ContainsFunc(r.trackers, func(base string) bool { return !r.readsHeaders[base] }) {
		r.result.Moved++
	}
	r.compare(ctx, e)
	return ctx.Err()
}

// refusal gives why an exchange is not replayed, where unfilled is the error of its placeholders.
func (r *replay) refusal(e Exchange, unfilled error) string {
	changes := !isRead(e.Request.Method)
	// With writes, everything is sent that may have led to what is compared, such as a login.
	effective := changes || r.Writes
	switch {
	case !r.wanted(e):
		return skipNotOnly
	case e.Unsendable != "":
		return e.Unsendable
	case changes && !r.Writes:
		return skipWrite
	case e.Operation == "" && !effective:
		return skipOther
	case r.isRecorded() && e.Response == nil && !effective:
		return skipNoAnswer
	case unfilled != nil:
		return unfilled.Error()
	case r.isRecorded() && r.missing.touches(e): // two trackers that get the same requests miss the same
		return skipDepends
	}
	return ""
}

func (r *replay) wanted(e Exchange) bool {
	return len(r.Only) == 0 || slices.ContainsFunc(r.Only, func(pattern string) bool {
		byName, _ := path.Match(pattern, e.Name) // a malformed pattern matches nothing
		byOperation, _ := path.Match(pattern, string(e.Operation))
		return byName || byOperation
	})
}

// reset resets the data of reference trackers, and reports whether it is that of the recording now.
func (r *replay) reset(ctx context.Context) bool {
	all := true
	for _, base := range r.trackers {
		response, err := r.send(ctx, base, Request{Method: http.MethodPost, Path: "/_tracker/reset", Body: []byte{}})
		if err != nil || response.Status >= http.StatusMultipleChoices {
			r.result.Skipped[skipReset]++
			all = false
		}
	}
	return all
}

// report makes the report of what was found.
func (r *replay) report() {
	input := verdict.JudgeInput{At: time.Now().UTC(), Target: r.Target, Rules: r.Rules, Uses: slices.Collect(maps.Values(r.uses))}
	input.Pair = upstream.Sides{Serving: cmp.Or(r.Against, "the recording"), Compared: r.Tracker}
	for operation, tally := range r.tallies {
		if d, slower := r.Latency.Slower(tally.AnsweredLatency, tally.OtherLatency); slower {
			r.find(operation, d, "latency", fmt.Sprintf("%s ms became %s ms", d.Want, d.Have))
		}
		tally.Answered, tally.Other = input.Pair.Serving, input.Pair.Compared
		input.Tallies = append(input.Tallies, *tally)
	}
	input.Findings = slices.Collect(maps.Values(r.findings))
	r.result.Report = verdict.Judge(input)
}

// maxFindings bounds how many findings are kept, as in state.
const maxFindings = 10_000

// find counts a finding and gives its signature. A mismatch with one that is not kept counts all the same.
func (r *replay) find(operation mapping.Operation, d compare.Difference, kind, note string) (signature string) {
	now := time.Now().UTC()
	signature = d.Signature(operation)
	f, known := r.findings[signature]
	if !known {
		f = state.Finding{
			Signature: signature, Operation: operation, Class: string(d.Class), Path: d.Path, Kind: kind,
			Status: state.StatusOpen, First: now, Changed: now, Note: note,
		}
	}
	f.Count++
	f.Last = now
	if known || len(r.findings) < maxFindings {
		r.findings[signature] = f
	}
	return signature
}

// isRead reports whether requests of a method change nothing.
func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
