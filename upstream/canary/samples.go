package canary

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/canary/writes"
	"portico/upstream/state"
)

const (
	// maxShown bounds the differences in one sample, maxExcerpt the bytes of an
	// object around them. About maxSampled of the findings of one comparison get a sample.
	maxShown   = 8
	maxSampled = 32
	maxExcerpt = 16 << 10
	maxTarget  = 1 << 10
	maxAgent   = 200
)

// The kinds of findings, beside verdict.KindUnstable.
const (
	kindReply    = "reply"
	kindPlan     = "plan"
	kindReadBack = "readback"
	kindLatency  = "latency"
	kindIsolated = "isolated"
)

// SampleText is one comparison in which a finding was seen, as state.Sample.Text has
// it in JSON. Free texts, names of files and content are taken out of it.
type SampleText struct {
	// Method and Target are the request by which a client asks for the same.
	Method string `json:"method"`
	Target string `json:"target"`
	// Targets are the paths and queries by which each tracker is asked for the same, by
	// the trackers' names. A tracker that has no such path is left out.
	Targets map[string]string `json:"targets,omitempty"`
	// Caller is the name of the caller, or else the kind of its credential: anonymous,
	// key, login, token, authorization or cookies. UserAgent and RequestID are those of
	// its request.
	Caller    string `json:"caller,omitempty"`
	UserAgent string `json:"user_agent,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// Differences are those of the finding without their content, Want being the reference's.
	Differences []compare.Difference `json:"differences"`
	// Answered and Other are the attachment, flag type or record around the first of
	// them, of the reference and of the candidate.
	Answered       jsontext.Value `json:"answered,omitempty"`
	Other          jsontext.Value `json:"other,omitempty"`
	AnsweredStatus int            `json:"answered_status"`
	OtherStatus    int            `json:"other_status"`
}

// findings makes findings of the differences of one comparison, one for each signature.
func (c *Canary) findings(j *job, confirmed []compare.Difference, kind string) []*state.Sighting {
	if len(confirmed) == 0 {
		return nil
	}
	bySignature := map[string][]compare.Difference{}
	for _, d := range confirmed {
		signature := d.Signature(j.operation)
		bySignature[signature] = append(bySignature[signature], d)
	}
	scope := c.scope(j)
	at := j.began.UTC() // what is judged meanwhile, or in another process, was asked before
	var list []*state.Sighting
	for signature, same := range bySignature {
		f := &state.Sighting{Finding: state.Finding{
			Signature: signature, Operation: j.operation, Class: string(same[0].Class), Path: same[0].Path,
			Kind: kind, Count: 1, First: at, Last: at, Note: c.note(same[0]), Scopes: []state.Scope{scope},
		}}
		if same[0].Unstable {
			f.Kind = verdict.KindUnstable
		}
		if rand.IntN(len(bySignature)) < maxSampled {
			f.Sample = c.sample(j, scope.Caller, same)
		}
		list = append(list, f)
	}
	return list
}

// scope says for whom the findings of a comparison are.
func (c *Canary) scope(j *job) state.Scope {
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	caller, _ := c.callerFor(j.caller, c.options.Reference)
	return state.Scope{
		Caller:  cmp.Or(c.options.CallerName(j.caller), j.caller.CredentialKind()),
		Product: writes.Product(ctx, c.options.Locate, caller, j.call),
	}
}

// sample redacts what one finding is about. nil is no sample.
func (c *Canary) sample(j *job, caller string, same []compare.Difference) []byte {
	method, target := j.call.Line()
	target, agent, first := upstream.EndAtCredential(target), upstream.EndAtCredential(j.caller.UserAgent), same[0]
	text := SampleText{
		Method: method, Target: target[:min(len(target), maxTarget)], Targets: map[string]string{},
		Caller: caller, UserAgent: agent[:min(len(agent), maxAgent)], RequestID: j.caller.RequestID,
		Answered: c.excerpt(first.WantIn, first.Place), Other: c.excerpt(first.HaveIn, first.Place),
		AnsweredStatus: j.first.Status, OtherStatus: j.second.Status,
	}
	for name, tracker := range c.options.Trackers {
		if address := tracker.Address(c.ctx, j.call); address != "" {
			text.Targets[name] = upstream.EndAtCredential(address)
		}
	}
	for _, d := range same[:min(len(same), maxShown)] {
		d.Want, d.Have = c.excerpt(d.Want, d.Path), c.excerpt(d.Have, d.Path)
		text.Differences = append(text.Differences, d)
	}
	made, _ := json.Marshal(text) // a value that is not JSON cannot be shown
	return made
}

func (c *Canary) excerpt(value jsontext.Value, path string) jsontext.Value {
	if shown := c.redactor.Redact(value, path); len(shown) <= maxExcerpt {
		return shown
	}
	return fmt.Appendf(nil, `{"text":{"length":%d}}`, len(value))
}

// note says what differs, and why the candidate may hold something else.
func (c *Canary) note(d compare.Difference) string {
	notes := []string{d.Class.Means()}
	if kind := d.Kind(); kind != "" {
		notes[0] = strings.TrimSuffix(notes[0], ".") + " (" + kind + ")."
	}
	if d.Unstable {
		notes = append(notes, "It was gone when both were asked again, although nothing was written.")
	}
	atPath, _ := d.Class.At(d.Path)
	notes = append(notes, atPath, c.repeated.Note())
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), " ")
}
