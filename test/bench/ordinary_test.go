package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	processes "portico/test/process"
)

// TestMain is also the entry of the helpers: this program, started again.
func TestMain(m *testing.M) {
	if helper(os.Args) {
		return
	}
	os.Exit(processes.Main(m))
}

// TestOrdinary runs the experiment for a moment. Every request must succeed; times do not matter.
func TestOrdinary(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("the kernel does not count CPU time: %v", err)
	}
	b := &bench{
		settings: settings{portico: processes.Portico(t), rounds: 1, length: turns * 20 * time.Millisecond, among: "goproxy,portico", dir: t.TempDir()},
		load:     loadLines,
	}
	if err := ordinary(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// loadLines is a load generator that needs no other program. A response without the attachment is an error.
func loadLines(ctx context.Context, connections int, length time.Duration, address string) (loaded, error) {
	end := time.Now().Add(length)
	responses, err := together(connections, func(int) (all []seen, err error) {
		line, err := openLine(ctx, address)
		if err != nil {
			return nil, err
		}
		defer line.close()
		for len(all) == 0 || time.Now().Before(end) {
			response, err := line.get(address, key)
			if err == nil && (response.status != http.StatusOK || response.size < 300) {
				err = fmt.Errorf("status %d with %d bytes", response.status, response.size)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, response)
		}
		return all, nil
	})
	if err != nil {
		return loaded{}, err
	}
	p50 := time.Duration(percentile(milliseconds(responses), .5) * float64(time.Millisecond))
	return loaded{count: len(responses), rate: float64(len(responses)) / length.Seconds(), p50: p50}, nil
}
