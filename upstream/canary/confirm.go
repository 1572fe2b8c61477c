package canary

import (
	"maps"

	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// maxAsked is how often the reference is asked about a difference whose signature
// is new, until it says itself what the candidate says. What it says every other
// time, it then fails to say once in 64 times.
const maxAsked = 6

// Confirmation decides about the differences that are left when both trackers were asked a second time. Live traffic and the replay
// of a recording use it.
type Confirmation struct {
	// Left are the differences that are still there or went away (compare.Remaining), without those that a write explains.
	Left []compare.Difference
	// Changed is what differs between the reference's first reply and its second.
	Changed []compare.Difference
	// Varied is what differs between two replies of one tracker, given one right after the other.
	Varied []compare.Difference
	// Again asks the reference once more and returns what differs from its reply before.
	Again func() ([]compare.Difference, verdict.DropReason)
	// Enough reports whether the reference needs not be asked more often about differences that it has not shown itself.
	Enough func(left []compare.Difference, asked int) bool
}

// Judged is what became of the differences of a Confirmation.
type Judged struct {
	// Confirmed are those that nothing explains, and Noise those that the reference shows itself.
	Confirmed, Noise []compare.Difference
	// Changed says that a change of the reference explains others.
	Changed bool
}

// Judge asks the reference as often as needed. With a reason the result is not complete.
func (c Confirmation) Judge() (judged Judged, reason verdict.DropReason) {
	varied, isChanged := variations(c.Varied), compare.Changed(c.Changed)
	for asked := 0; ; asked++ {
		judged = Judged{}
		for _, d := range c.Left {
			switch {
			case varied[variesAs(d)]:
				judged.Noise = append(judged.Noise, d)
			case isChanged(d):
				judged.Changed = true
			default:
				judged.Confirmed = append(judged.Confirmed, d)
			}
		}
		if len(judged.Noise) == len(c.Left) || asked > 0 && c.Enough(judged.Confirmed, asked) || asked == maxAsked {
			return judged, ""
		}
		more, reason := c.Again()
		if reason != "" {
			return judged, reason
		}
		maps.Copy(varied, variations(more))
	}
}
