package pages

import (
	"maps"
	"net/http"
	"slices"

	"portico/proxy/admin"
	"portico/upstream/canary"
)

// findingsView is the list of findings.
type findingsView struct {
	Tabs     tabs
	Findings []canary.FindingView // all that the filter lets through
	Listed   []canary.FindingView
	All      int
	// Rest is how many more there are than are shown.
	Rest     int
	Filters  []filter
	Filtered bool
}

// filter is one of the choices above the list.
type filter struct {
	Name, Title, Chosen string
	Choices             []choice
}

// choice is a value and how many findings have it.
type choice struct {
	Value string
	Count int
}

// mostListed is how many findings one page lists; /canary/findings.json has all.
const mostListed = 500

// traits are what the list is filtered by, in the order of the page.
var traits = []struct {
	name, title string
	of          func(canary.FindingView) string
}{
	{"status", "Status", func(f canary.FindingView) string { return f.Status }},
	{"operation", "Operation", func(f canary.FindingView) string { return string(f.Operation) }},
	{"class", "Class", func(f canary.FindingView) string { return string(f.Class) }},
}

func (p *canaryPages) findings(w http.ResponseWriter, r *http.Request) {
	report, ok := p.report(w, r)
	if !ok {
		return
	}
	view := findingsView{Tabs: tabs{"/canary/findings"}, Findings: report.Findings, All: len(report.Findings)}
	for _, trait := range traits {
		chosen := r.URL.Query().Get(trait.name)
		counts := map[string]int{}
		for _, f := range report.Findings {
			counts[trait.of(f)]++
		}
		one := filter{Name: trait.name, Title: trait.title, Chosen: chosen}
		for _, value := range slices.Sorted(maps.Keys(counts)) {
			one.Choices = append(one.Choices, choice{value, counts[value]})
		}
		view.Filters = append(view.Filters, one)
		if chosen != "" {
			view.Filtered = true
			view.Findings = slices.DeleteFunc(slices.Clone(view.Findings), func(f canary.FindingView) bool { return trait.of(f) != chosen })
		}
	}
	view.Rest = max(0, len(view.Findings)-mostListed)
	view.Listed = view.Findings[:len(view.Findings)-view.Rest]
	admin.Show(w, r, admin.Sheet{Title: "Findings · Canary", Body: findingsPage, Data: view, Live: true})
}

// rulesView is the list of equivalences.
type rulesView struct {
	Tabs            tabs
	Rules           []canary.RuleView
	Unused, Expired int
}

func (p *canaryPages) rules(w http.ResponseWriter, r *http.Request) {
	report, ok := p.report(w, r)
	if !ok {
		return
	}
	view := rulesView{Tabs: tabs{"/canary/rules"}, Rules: report.Rules}
	for _, rule := range report.Rules {
		switch rule.State {
		case canary.RuleUnused:
			view.Unused++
		case canary.RuleExpired:
			view.Expired++
		}
	}
	admin.Show(w, r, admin.Sheet{Title: "Rules · Canary", Body: rulesPage, Data: view, Live: true})
}
