package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"portico/cmd/portico/config"
)

// firstInherited is the first descriptor that a service manager passes.
const firstInherited = 3

// inheritedSockets returns the listening sockets that a service manager such as systemd has opened for this process, by name: client
// and admin. Such sockets stay open while the program is replaced, so that connections wait and are not refused. The protocol is that
// of sd_listen_fds(3).
func inheritedSockets(lookup func(string) (string, bool)) (sockets map[string]net.Listener, err error) {
	sockets = map[string]net.Listener{}
	if pid, _ := lookup("LISTEN_PID"); pid != strconv.Itoa(os.Getpid()) {
		return sockets, nil
	}
	count, _ := lookup("LISTEN_FDS")
	n, _ := strconv.Atoi(count)
	joined, _ := lookup("LISTEN_FDNAMES")
	names := append(strings.Split(joined, ":"), make([]string, max(n, 0))...)
	for i, name := range names[:max(n, 0)] {
		if name != "client" && name != "admin" || sockets[name] != nil {
			return sockets, fmt.Errorf("inherited socket %d is named %q: pass at most one named client and one named admin (FileDescriptorName=)", i, name)
		}
		file := os.NewFile(uintptr(firstInherited+i), name)
		socket, err := net.FileListener(file) // has a descriptor of its own
		if err = errors.Join(err, file.Close()); err != nil {
			return sockets, fmt.Errorf("take over the inherited socket %q: %w", name, err)
		}
		sockets[name] = socket
	}
	return sockets, nil
}

// listenOn is Listen on an inherited socket, or on the address where there is none.
func listenOn(inherited net.Listener, name, address string, handler http.Handler, cfg config.Config, logger *slog.Logger) (*Listener, error) {
	if inherited == nil {
		return Listen(name, address, handler, cfg, logger)
	}
	return newListener(inherited, name, handler, cfg, logger), nil
}
