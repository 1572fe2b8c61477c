package main

import (
	"os"
	"runtime/debug"
)

// The garbage collector runs when a quarter of the live heap has been allocated on top of it, and counts floorBytes as a part of that.
const (
	collectorPercent = 25
	floorBytes       = 40 << 20
)

// heapFloor sets the pace of the garbage collector, and returns memory that is never touched, so that the system never provides it. The
// caller keeps it. The live heap of Portico is some megabytes, and without the floor the collector would run for every few of them,
// many times a second while it serves cached reads. A higher GOGC would do the same for small heaps, and let the memory of a thousand
// waiting clients double before anything is collected. If GOGC is set it counts, on top of the floor.
func heapFloor() []byte {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	return make([]byte, floorBytes)
}
