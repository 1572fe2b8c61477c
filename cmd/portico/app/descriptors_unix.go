//go:build unix

package app

import (
	"math"
	"syscall"
)

// maxDescriptors is the number of descriptors that the process may open.
func maxDescriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return uint64(limit.Cur)
}
