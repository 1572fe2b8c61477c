package recording

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream/canary"
)

// perlReference is how a tracker writes what should not have been written: with an address that is another each time
// (wire-facts.md, section 13).
var perlReference = regexp.MustCompile(`\b(ARRAY|HASH)\(0x[0-9a-f]+\)`)

// These stand in recordings for texts of messages and for the address of the documentation.
const (
	notRecorded        = "(text)"
	addressNotRecorded = `"(url)"`
)

// masker makes a recorded answer and a new one alike where the recording has less.
type masker struct {
	redactor *Redactor
	// silent says that this recording leaves out the texts of messages. Where it has one nevertheless, as in the frame of
	// a callback, it was overlooked.
	silent bool
}

func newMasker() *masker {
	return &masker{redactor: &Redactor{maxData: -1, plain: true}}
}

// masked takes the same out of a reply that a Redactor takes out of an exchange, without telling what from what.
func (m *masker) masked(r canary.Reply) canary.Reply {
	s := &sheet{redactor: m.redactor}
	if r.Body != nil {
		if clean, ok := s.json(r.Body); ok {
			r.Body = []byte(s.flat(string(clean)))
		}
	}
	r.Message = s.flat(r.Message)
	return r
}

// flat masks a text.
func (s *sheet) flat(text string) string {
	if strings.Contains(text, "@") || strings.Contains(text, "%40") {
		text = address.ReplaceAllStringFunc(text, s.address)
	}
	text = numbered.ReplaceAllString(text, "{{$1}}")
	return perlReference.ReplaceAllString(text, "$1(address)")
}

var numbered = regexp.MustCompile(`\{\{(caller|login|address)-(?:\d{1,7}|x)\}\}`)

// pair makes both sides of a comparison with a recording.
func (m *masker) pair(recorded, got canary.Reply) (want, have canary.Reply) {
	want, have = m.masked(recorded), m.masked(got)
	if m.silent = m.silent || want.Message == notRecorded; m.silent && want.Message != "" && have.Message != "" {
		have.Message = want.Message
	}
	have.Body = withoutAddress(want.Body, have.Body)
	return want, have
}

// withoutAddress leaves the address of the documentation out of an error where the recording has left it out. That
// there is one is compared nevertheless.
func withoutAddress(want, have jsontext.Value) jsontext.Value {
	recorded, err := mapping.ParseMembers(want)
	if err != nil || string(recorded.Get("documentation")) != addressNotRecorded {
		return have
	}
	got, err := mapping.ParseMembers(have)
	if err != nil || got.Get("documentation").Kind() != '"' {
		return have
	}
	got.Set("documentation", recorded.Get("documentation"))
	return got.AppendJSON(nil)
}
