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
	ready   time.Duration // from its start until it listened
}

// start runs a program whose output goes to a file, and waits until it listens.
func start(ctx context.Context, dir, name, address string, arguments ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, filepath.Base(name)+"-"+strings.ReplaceAll(address, ":", "-")+".log"))
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	p := &process{command: exec.CommandContext(ctx, name, arguments...), log: log, exited: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = dir, log, log
	begun := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() { _ = p.command.Wait(); close(p.exited) }() // how it ended is told by its log
	if err := p.listens(ctx, address); err != nil {
		text, _ := os.ReadFile(log.Name())
		p.stop()
		return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	p.ready = time.Since(begun)
	return p, nil
}

// listens waits until a connection to an address is accepted.
func (p *process) listens(ctx context.Context, address string) error {
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return errors.New("it ended at once")
		case <-time.After(time.Millisecond):
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

// cpu returns the time that the threads of the family have run, as the scheduler counts it. Time of threads that have ended is missing.
func (p *process) cpu() (time.Duration, error) {
	var total time.Duration
	for _, pid := range p.family() {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, fmt.Errorf("list threads: %w", err)
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue
			}
			if err != nil {
				return 0, fmt.Errorf("read the CPU time: %w", err)
			}
			first, _, _ := strings.Cut(string(text), " ")
			n, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time: %w", err)
			}
			total += time.Duration(n)
		}
	}
	if total == 0 {
		return 0, errors.New("the kernel does not count CPU time in /proc/PID/task/*/schedstat")
	}
	return total, nil
}

// forgetPeak resets VmHWM to what is held now (proc(5), clear_refs).
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

// freeAddress returns an address with a port that is not in use.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
