package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// commands gives how many commands a Redis server has carried out. The asking is one of them.
func commands(ctx context.Context, redis *server) (int, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", redis.address)
	if err != nil {
		return 0, fmt.Errorf("reach redis: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("INFO stats\r\n")); err != nil {
		return 0, fmt.Errorf("ask redis: %w", err)
	}
	scanner := bufio.NewScanner(conn)
	for scanner.Scan() {
		if count, ok := strings.CutPrefix(scanner.Text(), "total_commands_processed:"); ok {
			return strconv.Atoi(strings.TrimSpace(count))
		}
	}
	return 0, fmt.Errorf("redis did not tell its commands: %w", scanner.Err())
}
