package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs beside the benchmark.
type process struct {
	command *exec.Cmd
	log     *os.File
	exited  chan struct{}
}

// start runs a program whose output goes to a file, and waits until it listens.
func start(ctx context.Context, dir, name, address string, arguments ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, filepath.Base(name)+"-"+strings.ReplaceAll(address, ":", "-")+".log"))
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	p := &process{command: exec.CommandContext(ctx, name, arguments...), log: log, exited: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = dir, log, log
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() { _ = p.command.Wait(); close(p.exited) }() // how it ended is told by its log
	if err := p.listens(ctx, address); err != nil {
		text, _ := os.ReadFile(log.Name())
		p.stop()
		return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return p, nil
}

// listens waits until somebody takes connections at an address.
func (p *process) listens(ctx context.Context, address string) error {
	for range 200 {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return errors.New("it ended at once")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("it does not listen")
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.command.Process.Kill()
		<-p.exited
	}
	_ = p.log.Close()
}

// family gives the process and its children, which nginx works with.
func (p *process) family() []int {
	main := p.command.Process.Pid
	all := []int{main}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", main, main))
	if err != nil {
		return all
	}
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// cpu gives the time in user and system mode that the family has used.
func (p *process) cpu() (time.Duration, error) {
	// The kernel counts in hundredths of a second (proc(5)), on every machine that Go runs on.
	const tick = 10 * time.Millisecond
	var total time.Duration
	for _, pid := range p.family() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the CPU time: %w", err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time: %w", err)
			}
			total += time.Duration(n) * tick
		}
	}
	return total, nil
}

// forgetPeak makes peak begin anew (proc(5), clear_refs).
func (p *process) forgetPeak() error {
	for _, pid := range p.family() {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return fmt.Errorf("forget the peak of memory: %w", err)
		}
	}
	return nil
}

// memory gives a line of /proc/PID/status for the family, in bytes: VmRSS is what it holds, VmHWM the most that it held.
func (p *process) memory(line string) (int64, error) {
	var total int64
	for _, pid := range p.family() {
		file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("read the memory: %w", err)
		}
		scanner := bufio.NewScanner(file)
		for scanner.Scan() {
			if rest, ok := strings.CutPrefix(scanner.Text(), line+":"); ok {
				kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				total += kilobytes << 10
			}
		}
		_ = file.Close() // it was only read
	}
	return total, nil
}

// freeAddress finds a port that nobody listens at.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
