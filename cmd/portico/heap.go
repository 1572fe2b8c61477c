package main

import (
	"os"
	"runtime/debug"
)

// The garbage collector runs when a quarter of what is kept has been allocated on
// top of it, and takes floorBytes for a part of that.
const (
	collectorPercent = 25
	floorBytes       = 40 << 20
)

// heapFloor gives memory that nobody touches, so that the system never provides
// it. What Portico keeps is small, some megabytes, and without the floor the
// collector would run for every few of them, which is many times a second where
// cached reads are answered. A higher GOGC would do the same for little heaps, and
// let what a thousand waiting clients keep double before anything is collected.
// Who sets GOGC gets what he asks for, on top of the floor.
func heapFloor() []byte {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	return make([]byte, floorBytes)
}
