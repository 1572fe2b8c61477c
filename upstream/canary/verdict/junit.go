package verdict

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"portico/upstream/state"
)

// The form of JUnit that build servers read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Name    string       `xml:"name,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the report as a test run: a case for each operation and each finding.
// What is undecided or accepted is skipped, since build servers know no third way;
// the verdict itself is a case that fails unless it is PASS.
func (r Report) JUnit(w io.Writer) error {
	verdict, operations, findings := junitSuite{Name: "verdict"}, junitSuite{Name: "operations"}, junitSuite{Name: "findings"}
	all := r.Overall
	verdict.add(r.Verdict != Pass, false, fmt.Sprintf("%s: %d compared, %d differ, %d more needed", r.Verdict, all.Compared, all.Confirmed, all.Needed),
		junitCase{Class: "canary.verdict", Name: "the candidate answers the same", Output: strings.Join(all.Reasons, "\n")})
	for _, v := range r.Operations {
		operations.add(v.Verdict == Fail, v.Verdict == Inconclusive, strings.Join(v.Reasons, "; "), junitCase{
			Class: "canary.operation", Name: string(v.Operation),
			Output: fmt.Sprintf("compared %d, differ %d, upper bound %g, needed %d", v.Compared, v.Confirmed, v.UpperBound, v.Needed),
		})
	}
	for _, f := range r.Findings {
		message := fmt.Sprintf("%s, seen %d times, last %s", f.Class, f.Count, stamp(f.Last))
		if f.Status != state.StatusOpen {
			message = f.Actor + ": " + f.Reason
		}
		findings.add(f.Status == state.StatusOpen, f.Status == state.StatusAccepted, message, junitCase{
			Class: "canary.finding." + string(f.Operation), Name: f.Class + " " + f.Path + " " + f.Signature, Output: f.Note,
		})
	}
	text, err := xml.MarshalIndent(junitSuites{Name: "portico canary", Suites: []junitSuite{verdict, operations, findings}}, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	}
	return err
}

// add adds a case that has passed unless it has failed or is skipped.
func (s *junitSuite) add(failed, skipped bool, message string, c junitCase) {
	switch {
	case failed:
		c.Failure = &junitMessage{message}
		s.Failures++
	case skipped:
		c.Skipped = &junitMessage{message}
		s.Skipped++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}
