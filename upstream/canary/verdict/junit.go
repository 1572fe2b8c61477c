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
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the report as a test run: a case for each operation and each finding.
// What is undecided or accepted is skipped, since build servers know no third way;
// the verdict itself is a case that fails unless it is PASS.
func (r Report) JUnit(w io.Writer) error {
	verdict, operations, findings := junitSuite{Name: "verdict"}, junitSuite{Name: "operations"}, junitSuite{Name: "findings"}
	passed := Fail
	if r.Verdict == Pass {
		passed = Pass
	}
	all := r.Overall
	verdict.add(string(passed), junitMessage{string(r.Verdict), fmt.Sprintf("%s: %d compared, %d differ, %d more needed", r.Verdict, all.Compared, all.Confirmed, all.Needed)},
		junitCase{Class: "canary.verdict", Name: "the candidate answers the same", Output: strings.Join(all.Reasons, "\n")})
	for _, v := range r.Operations {
		operations.add(string(v.Verdict), junitMessage{string(v.Verdict), strings.Join(v.Reasons, "; ")}, junitCase{
			Class: "canary.operation", Name: string(v.Operation),
			Output: fmt.Sprintf("compared %d, differ %d, upper bound %g, needed %d", v.Compared, v.Confirmed, v.UpperBound, v.Needed),
		})
	}
	for _, f := range r.Findings {
		message := junitMessage{string(f.Class), fmt.Sprintf("seen %d times, last %s", f.Count, stamp(f.Last))}
		if f.Status != open {
			message = junitMessage{Message: f.Actor + ": " + f.Reason}
		}
		findings.add(f.Status, message, junitCase{
			Class: "canary.finding." + string(f.Operation), Name: string(f.Class) + " " + f.Path + " " + f.Signature, Output: f.Note,
		})
	}
	suites := junitSuites{Name: "portico canary"}
	for _, suite := range []junitSuite{verdict, operations, findings} {
		suite.Timestamp = r.At.UTC().Format("2006-01-02T15:04:05")
		suites.Tests += suite.Tests
		suites.Failures += suite.Failures
		suites.Skipped += suite.Skipped
		suites.Suites = append(suites.Suites, suite)
	}
	text, err := xml.MarshalIndent(suites, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	}
	return err
}

// add adds a case that fails or is skipped as a verdict or the status of a finding says.
func (s *junitSuite) add(status string, message junitMessage, c junitCase) {
	switch status {
	case string(Fail), open:
		c.Failure = &message
		s.Failures++
	case string(Inconclusive), string(state.StatusAccepted):
		c.Skipped = &message
		s.Skipped++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}
