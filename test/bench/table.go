package main

import (
	"fmt"
	"slices"
	"strings"
)

// table collects the figures of several servers by row. A figure of a row and a server is the median of what was added.
type table struct {
	rows, servers []string
	figures       map[[2]string][]float64
}

// add adds what one round showed.
func (t *table) add(row, server string, figure float64) {
	if t.figures == nil {
		t.figures = map[[2]string][]float64{}
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	if !slices.Contains(t.servers, server) {
		t.servers = append(t.servers, server)
	}
	t.figures[[2]string{row, server}] = append(t.figures[[2]string{row, server}], figure)
}

// median returns the figure of a row and a server, and whether it was measured.
func (t *table) median(row, server string) (float64, bool) {
	all := t.figures[[2]string{row, server}]
	if len(all) == 0 {
		return 0, false
	}
	return percentile(all, .5), true
}

// print prints the medians, and below each of them its ratios to nginx and to the plain proxy.
func (t *table) print(r *report) {
	r.say("%-30s%s", "median", t.columns(func(server string) string { return server }))
	for _, row := range t.rows {
		r.say("%-30s%s", row, t.columns(func(server string) string {
			return cell(t.median(row, server))
		}))
		for _, base := range []string{nginxName, goproxyName} {
			under, ok := t.median(row, base)
			if !ok || under == 0 {
				continue
			}
			r.say("%-30s%s", "  by "+base, t.columns(func(server string) string {
				over, ok := t.median(row, server)
				return cell(over/under, ok)
			}))
		}
	}
}

func (t *table) columns(text func(server string) string) string {
	var line strings.Builder
	for _, each := range t.servers {
		fmt.Fprintf(&line, " %14s", text(each))
	}
	return line.String()
}

func cell(figure float64, measured bool) string {
	if !measured {
		return "-"
	}
	return fmt.Sprintf("%.3f", figure)
}

// goal is a bound for a row of Portico.
type goal struct {
	row string
	// by is the server whose figure Portico's is divided by; empty means that the figure itself is bounded.
	by    string
	bound float64
	// minimum says that the bound is one from below.
	minimum bool
}

// check compares every Portico in the table with the goals. A goal whose peer was not measured is left out.
func (t *table) check(r *report, goals ...goal) {
	for _, g := range goals {
		for _, server := range t.servers {
			figure, measured := t.median(g.row, server)
			if !measured || !strings.HasPrefix(server, porticoName) {
				continue
			}
			what := g.row + ", " + server
			if g.by != "" {
				under, ok := t.median(g.row, g.by)
				if !ok {
					continue
				}
				figure /= under
				what += " by " + g.by
			}
			if g.minimum {
				r.hold(fmt.Sprintf("%-70s %9.3f   target at least %g:", what, figure, g.bound), figure >= g.bound)
			} else {
				r.target(what, figure, g.bound)
			}
		}
	}
}
