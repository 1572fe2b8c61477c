//go:build !linux

package proxy

import "net"

// boundUnsent does nothing where the system's buffers are small.
func boundUnsent(net.Conn) {}
