//go:build !unix

package app

import "math"

// maxDescriptors is the number of descriptors that the process may open.
func maxDescriptors() uint64 { return math.MaxInt32 }
