package canary

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/upstream/state"
)

const (
	// mostShown bounds the differences in one sample, longestExcerpt the bytes of an
	// object around them. mostSampled is about how many of the findings of one
	// comparison get a sample.
	mostShown      = 8
	mostSampled    = 32
	longestExcerpt = 16 << 10
	longestTarget  = 1 << 10
)

// SampleText is one comparison in which a finding was seen, as state.Sample.Text has
// it in JSON. Free texts, names of files and content are taken out of it.
type SampleText struct {
	// Method and Target are the request by which a client asks for the same.
	Method string `json:"method"`
	Target string `json:"target"`
	// Differences are those of the finding, Want being the reference's.
	Differences []SampleDifference `json:"differences"`
	// Answered and Other are the attachment, flag type or record around the first of
	// them, of the reference and of the candidate.
	Answered       jsontext.Value `json:"answered,omitempty"`
	Other          jsontext.Value `json:"other,omitempty"`
	AnsweredStatus int            `json:"answered_status"`
	OtherStatus    int            `json:"other_status"`
}

// SampleDifference is a Difference without content.
type SampleDifference struct {
	Class   Class          `json:"class"`
	Path    string         `json:"path"`
	Pointer string         `json:"pointer"`
	Want    jsontext.Value `json:"want,omitempty"`
	Have    jsontext.Value `json:"have,omitempty"`
}

// found makes findings of the differences of one comparison, one for each signature.
func (c *Canary) found(j *job, confirmed []Difference, kind string) []*found {
	bySignature := map[string][]Difference{}
	var order []string
	for _, d := range confirmed {
		signature := d.Signature(j.operation)
		if bySignature[signature] == nil {
			order = append(order, signature)
		}
		bySignature[signature] = append(bySignature[signature], d)
	}
	at := j.began.UTC() // what somebody judges meanwhile, or in another process, was asked before
	list := make([]*found, 0, len(order))
	around := &surroundings{canary: c}
	for _, signature := range order {
		same := bySignature[signature]
		var sample []byte
		if rand.IntN(len(order)) < mostSampled {
			sample = c.sample(j, same, around)
		}
		list = append(list, &found{
			Finding: state.Finding{
				Signature: signature, Operation: j.operation, Class: string(same[0].Class), Path: same[0].Path,
				Kind: kind, Count: 1, First: at, Last: at, Note: c.note(j, same[0]),
			},
			sample: sample,
		})
	}
	return list
}

// sample redacts what one finding is about. nil is no sample.
func (c *Canary) sample(j *job, same []Difference, around *surroundings) []byte {
	method, target := j.call.Line()
	text := SampleText{
		Method: method, Target: target[:min(len(target), longestTarget)],
		AnsweredStatus: j.first.Status, OtherStatus: j.second.Status,
	}
	text.Answered, text.Other = around.of(same[0])
	for _, d := range same[:min(len(same), mostShown)] {
		text.Differences = append(text.Differences, SampleDifference{
			Class: d.Class, Path: d.Path, Pointer: d.Pointer, Want: c.excerpt(d.Want, d.Path), Have: c.excerpt(d.Have, d.Path),
		})
	}
	made, err := json.Marshal(text)
	if err != nil {
		return nil // a value that is no JSON cannot be shown
	}
	return made
}

// surroundings are the redacted objects around the differences of one comparison.
// Those of one object stand together, so that none is redacted for each of them.
type surroundings struct {
	canary          *Canary
	last            Difference
	answered, other jsontext.Value
}

func (s *surroundings) of(d Difference) (answered, other jsontext.Value) {
	if d.Place != s.last.Place || !sameText(d.WantIn, s.last.WantIn) || !sameText(d.HaveIn, s.last.HaveIn) {
		s.last = d
		s.answered, s.other = s.canary.excerpt(d.WantIn, d.Place), s.canary.excerpt(d.HaveIn, d.Place)
	}
	return s.answered, s.other
}

// sameText tells whether two values are the same piece of the same text.
func sameText(a, b jsontext.Value) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (c *Canary) excerpt(value jsontext.Value, path string) jsontext.Value {
	if shown := c.redactor.Redact(value, path); len(shown) <= longestExcerpt {
		return shown
	}
	return jsontext.Value(`{"text":{"length":` + fmt.Sprint(len(value)) + `}}`)
}

// note is one sentence on a finding, and others where the candidate may hold something else.
func (c *Canary) note(j *job, d Difference) string {
	note := c.noteOf(j, d)
	if c.replays.gap.Load() {
		note += " " + noteOfGap
	}
	if c.replays.overlap.Load() {
		note += " " + noteOfOverlap
	}
	return strings.TrimSpace(note)
}

func (c *Canary) noteOf(j *job, d Difference) string {
	switch {
	case d.Class == ClassDigest && (j.first.Digest != nil || j.second.Digest != nil):
		return fmt.Sprintf("The answers differ; longer than %d bytes, or nested too deeply, they were compared by their digests only.", c.options.MaxBody)
	case d.Class == ClassFailure:
		return "The candidate gave no sound answer: " + string(unquoted(d.Have)) + "."
	case d.Class == ClassLatency:
		return "The candidate takes longer to answer than it may."
	case d.Class == ClassPlan && d.Path == PathRefused:
		return "The write can be expressed for one of the trackers only."
	}
	return ""
}
