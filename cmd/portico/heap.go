package main

// floorBytes is how much more than without it may be allocated until the garbage
// collector runs.
const floorBytes = 8 << 20

// heapFloor gives memory that nobody touches, so that the system never provides
// it. The garbage collector takes it for a part of the heap. What Portico keeps
// is small, some megabytes, and without this the collector would run for every
// four of them, which is many times a second where cached reads are answered.
// Unlike a higher GOGC it leaves alone what a large heap costs.
func heapFloor() []byte { return make([]byte, floorBytes) }
