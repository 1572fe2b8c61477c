package canary

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Text writes the report for a terminal: the verdict, the operations, what was
// found, and what to do next.
func (r Report) Text(w io.Writer) error {
	text := &reportText{report: r}
	text.verdict()
	text.operations()
	text.findings()
	text.rules()
	text.drops()
	text.next()
	if _, err := io.WriteString(w, strings.Map(printable, text.out.String())); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// printable leaves out what would command a terminal: reasons are what people typed.
func printable(r rune) rune {
	if r != '\n' && unicode.IsControl(r) {
		return -1
	}
	return r
}

// reportText is a report in the making.
type reportText struct {
	report Report
	out    strings.Builder
}

func (t *reportText) line(format string, args ...any) {
	fmt.Fprintf(&t.out, format+"\n", args...)
}

// table writes rows in columns.
func (t *reportText) table(title string, rows [][]string) {
	t.line("\n%s", title)
	columns := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(columns, "  "+strings.Join(row, "\t"))
	}
	_ = columns.Flush() // a strings.Builder takes everything
}

func (t *reportText) verdict() {
	all := t.report.Overall
	t.line("%s  %s against %s", t.report.Verdict, nameOr(t.report.Pair.Other, "the candidate"), nameOr(t.report.Pair.Answered, "the tracker that answers"))
	t.line("  %s compared, %s differ (%s), at most %s at 95 %% confidence; %s are allowed",
		count(all.Compared), count(all.Confirmed), percent(all.Rate), percent(all.UpperBound), percent(t.report.Target))
	if started := t.report.Campaign.Started; !started.IsZero() {
		t.line("  since %s%s", stamp(started), campaignReason(t.report.Campaign))
	}
}

func campaignReason(c CampaignView) string {
	if c.Reason == "" {
		return ""
	}
	return " (" + c.Actor + ": " + c.Reason + ")"
}

func (t *reportText) operations() {
	if len(t.report.Operations) == 0 {
		return
	}
	rows := [][]string{{"operation", "verdict", "compared", "differ", "at most", "needed", "accepted", "transient", "noise", "dropped", "median", "95 %", "ratio"}}
	for _, v := range append(slices.Clone(t.report.Operations), t.report.Overall) {
		rows = append(rows, []string{
			nameOr(string(v.Operation), "all"), string(v.Verdict), count(v.Compared), count(v.Confirmed), bound(v), count(v.Needed),
			count(v.Accepted), count(v.Transient), count(v.Noisy), count(v.Dropped),
			duration(v.Answered.P50) + " / " + duration(v.Other.P50), duration(v.Answered.P95) + " / " + duration(v.Other.P95), times2(v.Ratio),
		})
	}
	t.table("Operations (times: the one that answers / the other)", rows)
}

// maxShown is how many findings a terminal is bothered with.
const maxShown = 40

func (t *reportText) findings() {
	if len(t.report.Findings) == 0 {
		return
	}
	rows := [][]string{{"finding", "status", "operation", "class", "path", "seen", "last"}}
	for i, f := range t.report.Findings {
		if i == maxShown {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(t.report.Findings)-i)})
			break
		}
		rows = append(rows, []string{f.Signature, judged(f), string(f.Operation), string(f.Class) + kindOf(f), f.Path, count(f.Count), stamp(f.Last)})
	}
	t.table("Findings", rows)
}

func judged(f FindingView) string {
	if f.Until.IsZero() || f.Status == "open" {
		return f.Status
	}
	return f.Status + " until " + f.Until.UTC().Format(time.DateOnly)
}

// kindOf names what a finding is of where that is not the reply.
func kindOf(f FindingView) string {
	if f.Kind == "reply" || f.Kind == string(f.Class) {
		return ""
	}
	return " (" + f.Kind + ")"
}

func (t *reportText) rules() {
	if len(t.report.Rules) == 0 {
		return
	}
	rows := [][]string{{"rule", "state", "type", "path", "hits", "owner", "ends"}}
	for _, rule := range t.report.Rules {
		rows = append(rows, []string{
			rule.Name, string(rule.State), string(rule.Type), rule.Path, count(rule.Hits), rule.Owner, rule.Expires.UTC().Format(time.DateOnly),
		})
	}
	t.table("Rules", rows)
}

func (t *reportText) drops() {
	if len(t.report.Dropped) == 0 {
		return
	}
	rows := [][]string{}
	for _, reason := range sortedKeys(t.report.Dropped) {
		rows = append(rows, []string{reason, count(t.report.Dropped[reason])})
	}
	t.table("Not compared", rows)
}

// next says what to do.
func (t *reportText) next() {
	var steps []string
	if reasons := t.report.Overall.Reasons; len(reasons) > 0 {
		t.line("\nWhy not PASS")
		for _, reason := range reasons {
			t.line("  %s", reason)
		}
	}
	if open := t.report.open(); open > 0 {
		steps = append(steps, fmt.Sprintf("look at the %s: fix the candidate, or accept what does not matter, with a reason and an end", plural2(open, "open finding")))
	}
	if needed := t.report.Overall.Needed; needed > 0 && t.report.Verdict == Inconclusive {
		steps = append(steps, "let "+plural2(needed, "more comparison")+" come in, or compare a larger share of the calls")
	}
	for _, rule := range t.report.Rules {
		switch rule.State {
		case RuleExpired:
			steps = append(steps, fmt.Sprintf("rule %s has ended: %s may renew it or take it out", rule.Name, rule.Owner))
		case RuleUnused:
			steps = append(steps, fmt.Sprintf("rule %s was never hit: %s may take it out", rule.Name, rule.Owner))
		}
	}
	if t.report.Verdict == Pass {
		steps = append(steps, "reads may move to the candidate")
	}
	if len(steps) > 0 {
		t.line("\nNext")
		for _, step := range steps {
			t.line("  - %s", step)
		}
	}
}

// open counts the open findings.
func (r Report) open() int64 {
	var n int64
	for _, f := range r.Findings {
		if f.Status == "open" {
			n++
		}
	}
	return n
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// count writes a number with thousands set apart.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// percent writes a share with three digits.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 3, 64) + " %" }

func bound(v OperationVerdict) string {
	if v.Compared == 0 {
		return "-"
	}
	return percent(v.UpperBound)
}

func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds()*1000, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
}

func times2(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return strconv.FormatFloat(ratio, 'f', 1, 64) + "x"
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// plural2 writes a number and what it counts.
func plural2(n int64, word string) string { return count(n) + " " + plural(int(min(n, 2)), word) }

func sortedKeys(counts map[string]int64) []string {
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
