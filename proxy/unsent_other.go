//go:build !linux

package proxy

import "net"

// boundUnsent does nothing where the buffers of the system are small.
func boundUnsent(net.Conn) {}
