package pages

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// choice is the part of the findings that a URL chooses.
type choice struct {
	Findings []state.Finding
	Filters  []filter
	// Path is a part of the paths of Findings, empty for all.
	Path string
	// Query is the part of the URL that chooses, with its question mark; empty if it chooses all.
	Query string
}

// filter is one of the choices above the list.
type filter struct {
	Name, Title, Chosen string
	Values              []counted
}

// counted is a value, such as one that a filter takes, with its number.
type counted struct {
	Value string
	Count int
}

// choose takes the findings that match the filters of a URL. A caller and a product belong to one call: a finding that each of them has
// seen apart does not match both. The error is a *fault for a value that no finding can have.
func choose(r *http.Request, all []state.Finding) (choice, error) {
	asked, kept := r.URL.Query(), url.Values{}
	c := choice{Path: asked.Get("path"), Findings: append([]state.Finding{}, all...)}
	if c.Path != "" {
		kept.Set("path", c.Path)
	}
	other := func(name, value string) bool { return asked.Get(name) != "" && asked.Get(name) != value }
	for i, f := range c.Findings {
		c.Findings[i].Scopes = slices.DeleteFunc(slices.Clone(f.Scopes), func(s state.Scope) bool {
			return other("caller", s.Caller) || other("product", s.Product)
		})
	}
	scopes := func(value func(state.Scope) string) func(state.Finding) []string {
		return func(f state.Finding) (values []string) {
			for _, scope := range f.Scopes {
				values = append(values, value(scope))
			}
			return values
		}
	}
	for _, each := range []struct {
		name, title string
		of          func(state.Finding) []string
		known       []string // nil if there may be others than those of the findings
	}{
		{"status", "Status", func(f state.Finding) []string { return []string{string(f.Status)} }, texts(state.StatusOpen, state.StatusAccepted, state.StatusFixed)},
		{"operation", "Operation", func(f state.Finding) []string { return []string{string(f.Operation)} }, texts(mapping.Operations()...)},
		{"class", "Class", func(f state.Finding) []string { return []string{f.Class} }, texts(compare.Classes()...)},
		{"caller", "Caller", scopes(func(s state.Scope) string { return s.Caller }), nil},
		{"product", "Product", scopes(func(s state.Scope) string { return s.Product }), nil},
	} {
		chosen := asked.Get(each.name)
		c.Filters = append(c.Filters, filter{Name: each.name, Title: each.title, Chosen: chosen, Values: valuesOf(all, each.of)})
		if chosen != "" {
			if each.known != nil && !slices.Contains(each.known, chosen) {
				return c, &fault{Status: http.StatusBadRequest, Message: fmt.Sprintf("There is no %s %q: known are %s.", each.name, chosen, strings.Join(each.known, ", "))}
			}
			kept.Set(each.name, chosen)
			c.Findings = slices.DeleteFunc(c.Findings, func(f state.Finding) bool { return !slices.Contains(each.of(f), chosen) })
		}
	}
	c.Findings = slices.DeleteFunc(c.Findings, func(f state.Finding) bool { return !strings.Contains(f.Path, c.Path) })
	if len(kept) > 0 {
		c.Query = "?" + kept.Encode()
	}
	return c, nil
}

func texts[T ~string](values ...T) (list []string) {
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}

// valuesOf returns the values that findings have, in order.
func valuesOf(findings []state.Finding, of func(state.Finding) []string) (values []counted) {
	counts := map[string]int{}
	for _, f := range findings {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(of(f)))) {
			counts[value]++
		}
	}
	delete(counts, "") // cannot be chosen
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		values = append(values, counted{value, counts[value]})
	}
	return values
}
