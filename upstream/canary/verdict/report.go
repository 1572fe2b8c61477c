package verdict

import (
	_ "embed" // the layout of the text
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
	"unicode"
)

//go:embed report.tmpl
var reportLayout string

// reportText is the text of a report. Tabs end the cells of a table.
var reportText = template.Must(template.New("report").Funcs(template.FuncMap{
	"number": number, "percent": percent, "milliseconds": milliseconds, "stamp": stamp,
}).Parse(reportLayout))

// maxShown is the maximum number of findings in the text.
const maxShown = 40

// Text writes the report for a terminal: the verdict, the operations, the findings, and what to do next.
func (r Report) Text(w io.Writer) error {
	shown := r.Findings[:min(len(r.Findings), maxShown)]
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	err := reportText.Execute(columns, struct {
		Report
		Shown  []FindingView
		Hidden int
		Steps  []string
	}{r, shown, len(r.Findings) - len(shown), r.nextSteps()})
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_ = columns.Flush() // a strings.Builder never fails
	// Reasons are what people typed: control characters in them would command the terminal.
	_, err = io.WriteString(w, strings.Map(func(c rune) rune {
		if c != '\n' && unicode.IsControl(c) {
			return -1
		}
		return c
	}, out.String()))
	return err
}

// nextSteps says what to do.
func (r Report) nextSteps() (steps []string) {
	unjudged := int64(0)
	for _, f := range r.Findings {
		if f.Status == open {
			unjudged++
		}
	}
	if unjudged > 0 {
		steps = append(steps, "look at the "+counted(unjudged, "open finding")+": fix the candidate, or accept what does not matter, with a reason and an end")
	}
	if needed := r.Overall.Needed; needed > 0 && r.Verdict == Inconclusive {
		steps = append(steps, "wait for "+counted(needed, "more comparison")+", or compare a larger share of the calls")
	}
	if r.Verdict == Pass {
		steps = append(steps, "reads may move to the candidate")
	}
	return steps
}

// number writes a number with thousands set apart.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// counted writes a number and what it counts.
func counted(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return number(n) + " " + word
}

// percent writes a share with three digits.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 3, 64) + " %" }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }
