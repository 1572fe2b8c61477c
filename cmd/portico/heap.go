package main

import (
	"os"
	"runtime/debug"
)

// The garbage collector runs when collectorPercent of the live heap have been allocated on top of it, and counts the floor as a part of that.
const (
	collectorPercent = 8
	floorParts       = 64
	floorPart        = 1 << 20 // bytes
)

// heapFloor sets the pace of the garbage collector, and returns memory that is never touched, so that the system never provides it. The
// caller keeps it. So the collector runs for every 5 MB while the live heap is some megabytes, as with the default of GOGC, and not for every
// 30 MB when a thousand clients wait. docs/benchmarks.md compares the settings. If GOGC is set it counts, on top of the floor.
//
// It is in parts, because memory that was used before has to be cleared, and so is provided: where one part begins in such memory, the others do not.
// The collector is off meanwhile: it would run thirty times.
func heapFloor() (floor [floorParts][]byte) {
	percent := debug.SetGCPercent(-1)
	for i := range floor {
		floor[i] = make([]byte, floorPart)
	}
	if os.Getenv("GOGC") == "" {
		percent = collectorPercent
	}
	debug.SetGCPercent(percent)
	return floor
}
