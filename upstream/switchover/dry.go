package switchover

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/journal"
)

// DryRun takes the place of everything around a Switchover, and keeps what that decides about one request: nothing is looked up
// or compared. Its fields are for reading after the request.
type DryRun struct {
	// Decisions are the decisions by rules and those to compare, in their order.
	Decisions []Decision
	// Lookups are the questions that rules had. The first one ends the request.
	Lookups []string

	table Table
	mu    sync.Mutex // guards the fields: parts of one request may go to both trackers at once
}

// Decision is one decision: Kind is rule or compared.
type Decision struct{ Kind, Text string }

// Replace changes settings so that the rules are those of table, and everything else is the DryRun.
func (d *DryRun) Replace(settings *Settings, table Table) {
	d.table = table
	settings.Table, settings.Shadow, settings.Journal, settings.Observer.Routed = table, dryComponents{d}, dryComponents{d}, d.routed
	for name := range settings.Locate {
		settings.Locate[name] = dryLocator{d, name}
	}
}

func (d *DryRun) routed(_ mapping.Operation, rule, tracker string) {
	for _, each := range d.table.Rules {
		if each.Name == rule {
			rule += fmt.Sprintf(" (reads %s, writes %s)", each.Reads, each.Writes)
		}
	}
	d.decided("rule", rule+": "+tracker+" answers")
}

func (d *DryRun) decided(kind, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Decisions = append(d.Decisions, Decision{kind, text})
}

// dryComponents are the upstream.Shadow and the Journal of a DryRun.
type dryComponents struct{ *DryRun }

// Answered implements upstream.Shadow.
func (d dryComponents) Answered(_ context.Context, _ upstream.Caller, _ upstream.Call, sides upstream.Sides, response upstream.Response) *mapping.Document {
	d.decided("compared", sides.Compared+", by the sample of canary")
	return response.Document
}

// Wrote implements upstream.Shadow.
func (dryComponents) Wrote(upstream.Call) {}

// Begin implements Journal.
func (dryComponents) Begin(context.Context, journal.Intent) (journal.Done, error) {
	return func(context.Context, upstream.Response) {}, nil
}

// Last implements Journal.
func (dryComponents) Last() *journal.Status { return nil }

// dryLocator is the Locator of a DryRun for one tracker.
type dryLocator struct {
	*DryRun
	tracker string
}

// lookup notes a question, and returns the error that ends the request there.
func (d dryLocator) lookup(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Lookups = append(d.Lookups, fmt.Sprintf(format, args...)+", asked of "+d.tracker)
	return mapping.TryLater(mapping.ReasonSwitchover, nil, "Nothing is looked up here.")
}

// Bug implements Locator.
func (d dryLocator) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	return mapping.Place{}, d.lookup("the product and component of bug %s", ref)
}

// AttachmentBug implements Locator.
func (d dryLocator) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	return 0, d.lookup("the bug of attachment %d", id)
}

// FlagTypePlaces implements Locator.
func (d dryLocator) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	return nil, nil, d.lookup("the products of the flag types %s", strings.TrimSpace(joined(ids, " ")+" "+joined(names, " ")))
}
