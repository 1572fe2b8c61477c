package transport

import "time"

// trialTime is how long a trial may wait for an answer: not long where no probe has got one either, and else not
// without end. Now and then one is patient all the same, for a tracker that has become slow.
func (b *Breaker) trialTime() time.Duration {
	switch {
	case b.o.Probe == nil, b.vouched && b.reopened%4 == 3:
		return b.o.TrialTimeout
	case !b.vouched:
		return min(b.o.TrialTimeout, b.o.BlindTimeout)
	}
	return b.patience()
}

// patience is a multiple of what the tracker takes when it is well.
func (b *Breaker) patience() time.Duration {
	return min(b.o.TrialTimeout, max(b.o.BlindTimeout, 3*b.usual))
}
