package pages

import (
	"encoding/json"
	"slices"
	"time"

	"portico/upstream/canary"
	"portico/upstream/state"
)

// sampleView is one comparison.
type sampleView struct {
	ID int64
	At time.Time
	canary.SampleText
	// Left and Right are what both answered, line beside line.
	Left, Right []line
	// Elsewhere says that they differ in more than this finding.
	Elsewhere bool
	Commands  []command
}

// viewSample reads a sample; one that cannot be read is shown with its time alone.
func (p *canaryPages) viewSample(prefix, path string, s state.Sample, between trackers) sampleView {
	view := sampleView{ID: s.ID, At: s.At}
	if json.Unmarshal(s.Text, &view.SampleText) != nil {
		return view
	}
	view.Left, view.Right = sideBySide(view.Answered, view.Other, path)
	view.Elsewhere = slices.ContainsFunc(slices.Concat(view.Left, view.Right), func(l line) bool { return l.Aside && l.Sign != "" })
	view.Commands = p.options.commands(prefix, view.Method, view.Target, between)
	return view
}
