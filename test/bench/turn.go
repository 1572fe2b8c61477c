package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's clocks in /proc/stat.
const tick = 10 * time.Millisecond

// patience is how often a turn is done at most until there are enough in which the machine was there.
const patience = 4

// stolenTime is how long all processors together were kept from this machine by others on its host, since it started. It is nothing
// where nobody tells.
func stolenTime() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	const steal = 8 // after the name: user, nice, system, idle, iowait, irq, softirq
	if len(fields) <= steal {
		return 0
	}
	ticks, _ := strconv.ParseInt(fields[steal], 10, 64)
	return time.Duration(ticks) * tick
}

// pacedTurn is paced, and tells whether the machine was there for it: others had a hundredth of two cores at most.
func pacedTurn(ctx context.Context, address string, length time.Duration) (took []float64, quiet bool, err error) {
	stolen := stolenTime()
	answers, err := paced(ctx, address, length)
	if err == nil {
		err = allGood(answers)
	}
	return milliseconds(answers), stolenTime()-stolen <= length/50, err
}

// errNeverQuiet says that nothing can be measured here and now.
var errNeverQuiet = errors.New("there was not one turn in which the machine was ours")
