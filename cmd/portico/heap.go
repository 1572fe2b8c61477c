package main

import (
	"os"
	"runtime/debug"
)

// The garbage collector runs when collectorPercent of the live heap have been allocated on top of it, and counts floorBytes as a part of that.
const (
	collectorPercent = 8
	floorBytes       = 64 << 20
)

// heapFloor sets the pace of the garbage collector, and returns memory that is never touched, so that the system never provides it. The
// caller keeps it. So the collector runs for every 5 MB while the live heap is some megabytes, as with the default of GOGC, and not for every
// 30 MB when a thousand clients wait. docs/benchmarks.md compares the settings. If GOGC is set it counts, on top of the floor.
func heapFloor() []byte {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	return make([]byte, floorBytes)
}
