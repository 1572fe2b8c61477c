package canary

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The form of JUnit that build servers read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
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
	verdict := junitSuite{Name: "verdict", Cases: []junitCase{r.verdictCase()}}
	operations := junitSuite{Name: "operations"}
	for _, v := range r.Operations {
		operations.Cases = append(operations.Cases, operationCase(v))
	}
	findings := junitSuite{Name: "findings"}
	for _, f := range r.Findings {
		findings.Cases = append(findings.Cases, findingCase(f))
	}
	suites := junitSuites{Name: "portico canary"}
	for _, suite := range []junitSuite{verdict, operations, findings} {
		suite.Timestamp = r.At.UTC().Format("2006-01-02T15:04:05")
		suites.add(suite)
	}
	text, err := xml.MarshalIndent(suites, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("write the report as JUnit: %w", err)
	}
	return nil
}

func (s *junitSuites) add(suite junitSuite) {
	for _, c := range suite.Cases {
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	s.Tests += suite.Tests
	s.Failures += suite.Failures
	s.Skipped += suite.Skipped
	s.Suites = append(s.Suites, suite)
}

func (r Report) verdictCase() junitCase {
	c := junitCase{Class: "canary.verdict", Name: "the candidate answers the same", Output: strings.Join(r.Overall.Reasons, "\n")}
	if r.Verdict != Pass {
		c.Failure = &junitMessage{Type: string(r.Verdict), Message: fmt.Sprintf(
			"%s: %d compared, %d differ, %d more needed", r.Verdict, r.Overall.Compared, r.Overall.Confirmed, r.Overall.Needed)}
	}
	return c
}

func operationCase(v OperationVerdict) junitCase {
	c := junitCase{Class: "canary.operation", Name: string(v.Operation)}
	message := &junitMessage{Type: string(v.Verdict), Message: strings.Join(v.Reasons, "; ")}
	switch v.Verdict {
	case Fail:
		c.Failure = message
	case Inconclusive:
		c.Skipped = message
	}
	c.Output = fmt.Sprintf("compared %d, differ %d, upper bound %g, needed %d", v.Compared, v.Confirmed, v.UpperBound, v.Needed)
	return c
}

func findingCase(f FindingView) junitCase {
	c := junitCase{Class: "canary.finding." + string(f.Operation), Name: string(f.Class) + " " + f.Path + " " + f.Signature, Output: f.Note}
	switch f.Status {
	case "open":
		c.Failure = &junitMessage{Type: string(f.Class), Message: fmt.Sprintf("seen %d times, last %s", f.Count, stamp(f.Last))}
	case "accepted":
		c.Skipped = &junitMessage{Message: f.Actor + ": " + f.Reason}
	}
	return c
}
