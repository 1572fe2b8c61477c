package canary

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
	"portico/upstream/canary/verdict"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// longest is how long a run of the demo may take on a busy machine.
const longest = 5 * time.Minute

// demo runs portico demo --drive and gives it with its exit code once it is over.
func demo(t *testing.T, args ...string) (*process.Process, int) {
	t.Helper()
	p := process.Launch(t, process.Spec{
		Program: process.Portico(t), Fails: true,
		Args: append([]string{"demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...),
	})
	code := p.Wait(t, longest)
	t.Logf("%s%s", &p.Out, &p.Err)
	return p, code
}

// planted are the differences between the demo's trackers, each with all findings
// that may come of it and nothing else.
func planted() map[string][]string {
	return map[string][]string{
		"missing-field": {
			"flag_type.get missing $.attachment[id].is_multiplicable", "flag_type.get missing $.bug[id].is_multiplicable",
			"attachment.list missing $.bugs[*][id].creator", "attachment.get missing $.attachments[*].creator",
		},
		"changed-type": {
			"flag_type.get type $.attachment[id].id", "flag_type.get type $.bug[id].id",
			"attachment.list type $.bugs[*][id].size", "attachment.get type $.attachments[*].size",
		},
		"reordered": {
			"flag_type.get order $.attachment", "flag_type.get order $.bug",
			"flag_type.get order $.attachment[id].values", "flag_type.get order $.bug[id].values",
			"attachment.list order $.bugs[*]", "attachment.list order $.bugs[*][id].flags", "attachment.get order $.attachments[*].flags",
		},
		"wrong-group-values": {
			"flag_type.get missing $.attachment[id].values[*]", "flag_type.get missing $.bug[id].values[*]",
		},
		"slow": {
			"flag_type.get latency latency.p50", "attachment.list latency latency.p50", "attachment.get latency latency.p50",
		},
	}
}

// TestDemoFindsWhatIsPlanted: everything that differs is found and nothing else. What
// a follower has late is found to be in passing, and what is different each time to
// be noise.
func TestDemoFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	clients, operators := process.FreeAddress(t), process.FreeAddress(t)
	p := process.Launch(t, process.Spec{
		Program: process.Portico(t), Fails: true,
		Args: []string{"demo", "--drive", "600", "--stay", "--listen", clients, "--admin-listen", operators},
	})
	for end := time.Now().Add(longest); !strings.Contains(p.Out.String(), "\nNext\n"); time.Sleep(20 * time.Millisecond) {
		if p.Ended() || time.Now().After(end) {
			t.Fatalf("there is no report: %s%s", &p.Out, &p.Err)
		}
	}
	var report verdict.Report
	fetch(t, "http://"+operators+"/canary/report.json", &report)
	compareFindings(t, report)
	if report.Overall.Transient == 0 {
		t.Error("no difference was in passing, and the candidate lags")
	}
	if report.Overall.Noisy == 0 {
		t.Error("no difference was noise, and a field is different each time")
	}
	t.Logf("%d compared, %d in passing, %d noise", report.Overall.Compared, report.Overall.Transient, report.Overall.Noisy)
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, longest); code != 0 || report.Verdict != verdict.Fail || !strings.Contains(p.Out.String(), "\nFound all 7 planted differences, and nothing else.\n") {
		t.Errorf("the verdict is %s and the exit code %d\n%s", report.Verdict, code, &p.Err)
	}
}

func compareFindings(t *testing.T, report verdict.Report) {
	t.Helper()
	found := map[string]bool{}
	for _, f := range report.Findings {
		found[fmt.Sprintf("%s %s %s", f.Operation, f.Class, f.Path)] = true
	}
	for quirk, differences := range planted() {
		for _, difference := range differences {
			if !found[difference] {
				t.Errorf("%s was planted, and %q not found", quirk, difference)
			}
			delete(found, difference)
		}
	}
	for _, other := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%q was not planted", other)
	}
}

// TestDemoEndsWithItsVerdict: without differences enough traffic is proof, and little proves nothing. Without enough requests some of
// what is planted is not found, and the demo says what.
func TestDemoEndsWithItsVerdict(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		says []string
	}{
		"--drive 9300 --same": {0, []string{"PASS  candidate against main"}},
		"--drive 40 --same":   {2, []string{"INCONCLUSIVE  candidate against main"}},
		"--drive 3":           {1, []string{"\nNot found: lag (", " of 7 planted differences."}},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			p, code := demo(t, strings.Fields(args)...)
			for _, said := range want.says {
				if code != want.code || !strings.Contains(p.Out.String(), said) {
					t.Errorf("the exit code is %d, want %d and %q", code, want.code, said)
				}
			}
		})
	}
}
