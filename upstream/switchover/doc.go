// Package switchover is a Tracker over two Trackers that moves from one to the other by rules and phases, and back, as section 10 of the design and upstream.Tracker say.
package switchover
