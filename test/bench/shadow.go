package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	shadowClients = 8
	// shadowPause is how long each client waits between two reads: what is measured is the wait of clients, not how much
	// two programs that share the cores can do.
	shadowPause = 80 * time.Millisecond
	shadowPath  = "/rest/bug/10/attachment"
	// shadowMemory is how much more memory the comparison may take, in MB.
	shadowMemory = 64
)

// The ways in which a candidate is sick.
const (
	candidateNone  = "none"
	candidateWell  = "well"
	candidateHung  = "hung"
	candidateFlood = "flooding"
	candidateReset = "resetting"
	candidateDead  = "dead"
)

// shadow compares what clients wait while every read is shadowed to a candidate, sick in several ways, with what they wait while
// none is.
func shadow(ctx context.Context, b *bench) error {
	b.report.title(fmt.Sprintf("every read shadowed, %d clients with a read each %v, p50 and p99 in ms", shadowClients, shadowPause))
	for _, failure := range b.failures() {
		if err := b.shadowed(ctx, failure); err != nil {
			return fmt.Errorf("candidate %s: %w", failure, err)
		}
	}
	return nil
}

// failures are those that are tried, "none" to see how much the same set-up differs from itself.
func (b *bench) failures() []string {
	all := []string{candidateNone, candidateWell, candidateHung, candidateFlood, candidateReset, candidateDead}
	if b.failure == "" {
		return all
	}
	return strings.Split(b.failure, ",")
}

// shadowed measures both set-ups in turn.
func (b *bench) shadowed(ctx context.Context, failure string) error {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return err
	}
	defer tracker.stop()
	address, stop, err := b.candidate(ctx, failure)
	if err != nil {
		return err
	}
	defer stop()
	off, on := b.besides(tracker, address, failure, "off", 0), b.besides(tracker, address, failure, "on", 1)
	if failure == candidateNone {
		on = b.besides(tracker, address, failure, "off too", 0)
	}
	return b.pair(ctx, failure, off, on)
}

// besides is a Portico with a candidate, and the share of the reads that are shadowed.
func (b *bench) besides(tracker *server, candidate, failure, name string, share int) facade {
	state := filepath.Join(b.dir, strings.ReplaceAll("shadow-"+failure+"-"+name+".db", " ", "-"))
	return facade{
		name: name, tracker: tracker.url("/"), redis: "embedded", level: "warn",
		trackers: "  next:\n    url: http://" + candidate + "/\n    dialect: bugzilla-5\n",
		more: []string{
			"primary: main", "candidate: next", fmt.Sprintf("state: %q", "sqlite:"+state), fmt.Sprintf("canary: {sample: %d}", share),
		},
	}
}

// pair starts both and loads them.
func (b *bench) pair(ctx context.Context, failure string, off, on facade) error {
	without, err := b.facade(ctx, off)
	if err != nil {
		return err
	}
	defer without.stop()
	with, err := b.facade(ctx, on)
	if err != nil {
		return err
	}
	defer with.stop()
	return b.inTurn(ctx, failure, []*server{without, with})
}

// inTurn loads the servers one after the other in short turns, so that a machine that changes meanwhile changes for both.
func (b *bench) inTurn(ctx context.Context, failure string, servers []*server) error {
	listed, cached, worked := make([][]float64, len(servers)), make([][]float64, len(servers)), make([]time.Duration, len(servers))
	for round := range turns*b.rounds + 1 {
		for i := range servers {
			which := (i + round) % len(servers) // nobody is always the first
			before, err := servers[which].cpu()
			if err != nil {
				return err
			}
			for path, into := range map[string]*[]float64{shadowPath: &listed[which], hotPath: &cached[which]} {
				answers, err := paced(ctx, servers[which].url(path), b.length/turns)
				if err == nil {
					err = allGood(answers)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", servers[which].name, err)
				}
				if round > 0 { // the first one warms up
					*into = append(*into, milliseconds(answers)...)
				}
			}
			after, err := servers[which].cpu()
			if err != nil {
				return err
			}
			if round > 0 {
				worked[which] += after - before
			}
		}
	}
	b.report.say("CPU for each read, candidate %s: %.0f microseconds off, %.0f on", failure,
		perRead(worked[0], listed[0], cached[0]), perRead(worked[1], listed[1], cached[1]))
	b.waits(failure, "attachments of a bug", listed)
	b.waits(failure, "cached flag types", cached)
	return b.held(failure, servers)
}

// perRead gives microseconds. Unlike the waits it hardly depends on who else uses the machine.
func perRead(worked time.Duration, reads ...[]float64) float64 {
	n := 0
	for _, each := range reads {
		n += len(each)
	}
	return float64(worked.Microseconds()) / float64(n)
}

// waits prints what clients waited.
func (b *bench) waits(failure, what string, took [][]float64) {
	for _, share := range []struct {
		name  string
		share float64
		most  float64
	}{{"p50", .50, 1.05}, {"p99", .99, 1.10}} {
		without, with := percentile(took[0], share.share), percentile(took[1], share.share)
		b.report.say("%s, %s of %d and %d reads: %.3f off, %.3f on", what, share.name, len(took[0]), len(took[1]), without, with)
		b.report.target(fmt.Sprintf("%s, %s on by off, candidate %s", what, share.name, failure), with/without, share.most)
	}
}

// held compares the memory.
func (b *bench) held(failure string, servers []*server) error {
	var most [2]int64
	for i, each := range servers {
		var err error
		if most[i], err = each.memory("VmHWM"); err != nil {
			return err
		}
	}
	b.report.target("MB more memory at most on than off, candidate "+failure, float64(most[1]-most[0])/(1<<20), shadowMemory)
	return nil
}

// paced reads an address for some time, at a pace that leaves the machine room.
func paced(ctx context.Context, address string, length time.Duration) ([]seen, error) {
	var mu sync.Mutex
	var all []seen
	var failed error
	var work sync.WaitGroup
	for n := range shadowClients {
		work.Go(func() {
			answers, err := pacedClient(ctx, address, length, rand.New(rand.NewPCG(uint64(n), 1)))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, answers...)
			if err != nil {
				failed = err
			}
		})
	}
	work.Wait()
	return all, failed
}

// pacedClient pauses for shadowPause on average, never twice for the same time: a beat would meet other beats.
func pacedClient(ctx context.Context, address string, length time.Duration, random *rand.Rand) (answers []seen, err error) {
	line, err := openLine(ctx, address)
	if err != nil {
		return nil, err
	}
	defer line.close()
	pause := func() { time.Sleep(shadowPause/2 + time.Duration(random.Int64N(int64(shadowPause)))) }
	pause()
	for end := time.Now().Add(length); time.Now().Before(end) && err == nil; pause() {
		var answer seen
		answer, err = line.get(address, key)
		answers = append(answers, answer)
	}
	return answers, err
}

// candidate gives the address of a second tracker, well or sick.
func (b *bench) candidate(ctx context.Context, failure string) (address string, stop func(), err error) {
	if failure == candidateWell {
		well, err := b.tracker(ctx)
		if err != nil {
			return "", nil, err
		}
		return well.address, well.stop, nil
	}
	if failure == candidateDead || failure == candidateNone {
		address, err = freeAddress(ctx)
		return address, func() {}, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { misbehave(conn, failure, ended) })
		}
	})
	return listener.Addr().String(), func() { close(ended); _ = listener.Close(); work.Wait() }, nil
}

// misbehave does to one connection what a sick candidate does.
func misbehave(conn net.Conn, failure string, ended <-chan struct{}) {
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 64<<10)); err != nil {
		return
	}
	switch failure {
	case candidateHung:
		<-ended
	case candidateReset:
		_ = conn.(*net.TCPConn).SetLinger(0)
	case candidateFlood:
		piece := []byte(strings.Repeat(" ", 64<<10))
		_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"))
		for err == nil {
			_, err = conn.Write(piece)
			select {
			case <-ended:
				return
			default:
			}
		}
	}
}
