package main

import (
	"log/slog"
	"slices"

	"portico/cache"
)

// commonUse is what the caches of a tracker have in common, in use by one of them.
type commonUse struct {
	*cache.Common
	tracker, address string
}

// common gives what the cache of the house before went on with, where that fits, so
// that a reload keeps answers, generation and changes that Redis has not heard of.
// Whoever gets it leaves it.
func (l *lasting) common(options cache.Options) (*commonUse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := &commonUse{tracker: options.Tracker, address: options.Address}
	for _, other := range l.commons {
		if other.Fits(options) {
			use.Common = other.Common
		}
	}
	if use.Common == nil {
		made, err := cache.OpenCommon(options)
		if err != nil {
			return nil, err
		}
		use.Common = made
	}
	l.commons = append(l.commons, use)
	l.inherit()
	return use, nil
}

// leave gives it back; the last to do so closes it.
func (l *lasting) leave(use *commonUse, logger *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commons = slices.DeleteFunc(l.commons, func(other *commonUse) bool { return other == use })
	l.inherit()
	if slices.ContainsFunc(l.commons, func(other *commonUse) bool { return other.Common == use.Common }) {
		return
	}
	if err := use.Close(); err != nil {
		logger.Warn("the cache could not be closed", "cause", err)
	}
}

// inherit has every write that ends in a former house count for the present one,
// also where Redis is a different one now.
func (l *lasting) inherit() {
	for i, use := range l.commons {
		var heir *cache.Common
		for _, later := range l.commons[i+1:] {
			if later.tracker == use.tracker && later.address == use.address {
				heir = later.Common
			}
		}
		if heir == nil || heir != use.Common {
			use.Hand(heir)
		}
	}
}
