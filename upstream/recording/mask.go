package recording

import (
	"regexp"
	"strings"

	"portico/upstream/canary"
)

// perlReference is how a tracker writes what should not have been written: with an address that is another each time
// (wire-facts.md, section 13).
var perlReference = regexp.MustCompile(`\b(ARRAY|HASH)\(0x[0-9a-f]+\)`)

// notRecorded stands in recordings for texts of messages.
const notRecorded = "(text)"

// masker makes a recorded answer and a new one alike where the recording has less.
type masker struct{ redactor *Redactor }

func newMasker() masker {
	return masker{&Redactor{maxData: -1, plain: true}}
}

// masked takes the same out of a reply that a Redactor takes out of an exchange, without telling what from what.
func (m masker) masked(r canary.Reply) canary.Reply {
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
func (m masker) pair(recorded, got canary.Reply) (want, have canary.Reply) {
	want, have = m.masked(recorded), m.masked(got)
	if want.Message == notRecorded && have.Message != "" {
		have.Message = notRecorded
	}
	return want, have
}
