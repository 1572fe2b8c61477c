package canary

import (
	"slices"
	"time"
)

// clockStep is how much two times differ that are said in whole seconds and lie within one.
const clockStep = time.Second

// longestLag bounds how much later may excuse anything.
const longestLag = time.Minute

// lagged learns how much later than on the reference a write was made on an isolated candidate.
func (c *Canary) lagged(j *job) {
	late := int64(min(time.Since(j.began)+j.took.answered, longestLag))
	for before := c.replays.lag.Load(); late > before; before = c.replays.lag.Load() {
		if c.replays.lag.CompareAndSwap(before, late) {
			return
		}
	}
}

// isOfReplay tells times at which something happened: on an isolated candidate all of it happened later, by no more
// than its writes were made later. Any other distance is a difference.
func (c *Canary) isOfReplay(d Difference) bool {
	if !c.options.Isolated || d.Class != ClassTime || !slices.Contains(timeFields, nameAt(namesOf(d.Path), 1)) {
		return false
	}
	apart, ok := times(unquoted(d.Want), unquoted(d.Have))
	return ok && apart <= time.Duration(c.replays.lag.Load())+clockStep
}
