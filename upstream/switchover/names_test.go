package switchover

import (
	"strings"
	"testing"
)

// TestNamesAreOneLine: names of rules stand in logs, in metrics and in lines of a terminal.
func TestNamesAreOneLine(t *testing.T) {
	for name, want := range map[string]bool{"Ünïcode 日本 <b>": true, "a\nrule b": false, "a\x1b[2J": false} {
		table := Table{Rules: []Rule{{Name: name, Reads: "old", Writes: "old"}}}
		problems := table.Problems(nil)
		if refused := len(problems) == 1 && problems[0].Field == "name" && strings.Contains(problems[0].Message, "control character"); refused == want || want && len(problems) > 0 {
			t.Errorf("%q: %v", name, problems)
		}
	}
}
