package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report prints what was seen and remembers whether it was good enough.
type report struct{ missed int }

func (r *report) met() bool { return r.missed == 0 }

// say prints one line.
func (r *report) say(format string, arguments ...any) { fmt.Printf(format+"\n", arguments...) }

// title begins an experiment.
func (r *report) title(text string) { r.say("\n## %s\n", text) }

// target prints a figure beside what it should be at most.
func (r *report) target(what string, figure, most float64) {
	verdict := "met"
	if figure > most {
		verdict = "MISSED"
		r.missed++
	}
	r.say("%-70s %9.3f   target at most %g: %s", what, figure, most, verdict)
}

// hold prints something that should be so.
func (r *report) hold(what string, so bool) {
	verdict := "met"
	if !so {
		verdict = "MISSED"
		r.missed++
	}
	r.say("%-70s %s", what, verdict)
}

// machine says where this was measured.
func (r *report) machine(ctx context.Context) {
	load, _ := os.ReadFile("/proc/loadavg")
	r.say("%s, %d cores, load %s, %s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), strings.TrimSpace(string(load)), runtime.Version())
	for _, command := range [][]string{{"uname", "-sr"}, {"nginx", "-v"}, {"haproxy", "-v"}, {"redis-server", "--version"}} {
		text, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			r.say("%s", first)
		}
	}
}

// percentile gives the figure below which a share of them lie.
func percentile(figures []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}
