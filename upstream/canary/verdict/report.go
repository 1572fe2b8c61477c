package verdict

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"portico/upstream/state"
)

// maxShown is the maximum number of findings in the text.
const maxShown = 40

// Text writes the report for a terminal: the verdict, the operations, the findings, and what to do next.
func (r Report) Text(w io.Writer) error {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	r.writeSummary(columns)
	r.writeLists(columns)
	_ = columns.Flush() // a strings.Builder never fails
	// Reasons are what people typed: control characters in them would command the terminal.
	_, err := io.WriteString(w, strings.Map(func(c rune) rune {
		if c != '\n' && unicode.IsControl(c) {
			return -1
		}
		return c
	}, out.String()))
	return err
}

// writeSummary writes the numbers, of all comparisons and of each operation.
func (r Report) writeSummary(w io.Writer) {
	all, since := r.Overall, r.Campaign
	fmt.Fprintf(w, "%s  %s against %s\n", r.Verdict, cmp.Or(r.Pair.Compared, "the candidate"), cmp.Or(r.Pair.Serving, "the reference"))
	fmt.Fprintf(w, "  %s compared, %s differ (%s), at most %s at 95 %% confidence; %s are allowed\n",
		number(all.Compared), number(all.Confirmed), percent(all.Rate), percent(all.UpperBound), percent(r.Target))
	if reason := " (" + since.Actor + ": " + since.Reason + ")"; !since.Started.IsZero() {
		if since.Reason == "" {
			reason = ""
		}
		fmt.Fprintln(w, "  since "+stamp(since.Started)+reason)
	}
	if len(r.Operations) == 0 {
		return
	}
	fmt.Fprint(w, "\nOperations (times: reference / candidate)\n  operation\tverdict\tcompared\tdiffer\tat most\tneeded\t"+
		"unstable\terrors\taccepted\ttransient\tnoise\tdropped\tmedian\t95 %\tratio\n")
	for _, v := range append(slices.Clip(r.Operations), all) {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s", cmp.Or(v.Operation, "all"), v.Verdict, number(v.Compared), number(v.Confirmed), percent(v.UpperBound))
		for _, n := range []int64{v.Needed, v.Unstable, v.Failed, v.Accepted, v.Transient, v.Noisy, v.Dropped} {
			fmt.Fprint(w, "\t", number(n))
		}
		if v.Ratio == 0 {
			fmt.Fprint(w, "\tnot measured\t\t\n")
			continue
		}
		fmt.Fprintf(w, "\t%s / %s\t%s / %s\t%.1fx\n", milliseconds(v.Answered.P50), milliseconds(v.Other.P50),
			milliseconds(v.Answered.P95), milliseconds(v.Other.P95), v.Ratio)
	}
}

// writeLists writes the findings, the rules, what was not compared, why the verdict is not PASS, and what to do.
func (r Report) writeLists(w io.Writer) {
	var findings, rules, drops []string
	for _, f := range r.Findings[:min(len(r.Findings), maxShown)] {
		status, class := string(f.Status), f.Class
		if !f.Until.IsZero() && f.Status != state.StatusOpen {
			status += " until " + date(f.Until)
		}
		if f.Kind != "reply" && f.Kind != class {
			class += " (" + f.Kind + ")"
		}
		findings = append(findings, row(f.Signature, status, string(f.Operation), class, f.Path, number(f.Count), stamp(f.Last), f.Note))
	}
	if more := len(r.Findings) - len(findings); more > 0 {
		findings = append(findings, fmt.Sprintf("and %d more", more))
	}
	for _, v := range r.Rules {
		rules = append(rules, row(v.Name, string(v.State), string(v.Type), v.Path, number(v.Hits), v.Owner, date(v.Expires)))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Dropped)) {
		drops = append(drops, row(reason, number(r.Dropped[reason])))
	}
	for _, list := range []struct {
		title, mark string
		lines       []string
	}{
		{"Findings\n  finding\tstatus\toperation\tclass\tpath\tseen\tlast\twhat", "  ", findings},
		{"Rules\n  rule\tstate\ttype\tpath\thits\towner\tends", "  ", rules},
		{"Not compared\n  reason\tcalls", "  ", drops},
		{"Why not PASS", "  ", r.Overall.Reasons}, {"Next", "  - ", r.NextSteps()},
	} {
		if len(list.lines) > 0 {
			fmt.Fprint(w, "\n", list.title, "\n", list.mark, strings.Join(list.lines, "\n"+list.mark), "\n")
		}
	}
}

// row joins the cells of a table.
func row(cells ...string) string { return strings.Join(cells, "\t") }

func date(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// NextSteps says what to do.
func (r Report) NextSteps() (steps []string) {
	unjudged := int64(0)
	for _, f := range r.Findings {
		if f.Status == state.StatusOpen {
			unjudged++
		}
	}
	if unjudged > 0 {
		steps = append(steps, "look at the "+counted(unjudged, "open finding")+": fix the candidate, or accept what does not matter, with a reason and an end")
	}
	if needed := r.Overall.Needed; needed > 0 && r.Verdict == Inconclusive {
		steps = append(steps, "get "+counted(needed, "more comparison")+": wait, compare a larger share of the calls, or replay more of them")
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
