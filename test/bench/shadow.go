package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	shadowClients = 8
	// shadowPause is how long each client waits between two reads: what is measured is the wait of clients, not how much
	// two programs that share the cores can do.
	shadowPause = 40 * time.Millisecond
	shadowPath  = "/rest/bug/10/attachment"
	// shadowTurns is into how many pieces a round is cut. The shorter they are, the less is lost of those that others disturb.
	shadowTurns = 8
	// shadowLives is how many processes share the turns of a round.
	shadowLives = 2
	// shadowMemory is how much more memory the comparison may take, in MB.
	shadowMemory = 64
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
	on := b.besides(tracker, address, failure, "on", 1)
	if failure == candidateNone {
		on = b.besides(tracker, address, failure, "off as well", 0)
	}
	return b.alike(ctx, failure, []facade{
		b.besides(tracker, address, failure, "off", 0), b.besides(tracker, address, failure, "off too", 0), on,
	})
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

// alike loads the facades. All but the last have the shadow off: what differs between them is noise.
func (b *bench) alike(ctx context.Context, failure string, facades []facade) error {
	peers := make([]*shadowPeer, len(facades))
	for i, each := range facades {
		peers[i] = &shadowPeer{is: each}
	}
	lives := shadowLives * b.rounds
	for life := range lives {
		if err := b.live(ctx, peers, life); err != nil {
			return err
		}
	}
	for _, p := range peers {
		b.report.say("%s: %d and %d turns of %v count, of %d processes, in %d others the machine was somebody else's", p.is.name, len(p.listed),
			len(p.cached), b.length/shadowTurns, lives, p.disturbed)
	}
	b.report.say("CPU for each read, candidate %s: %.0f and %.0f microseconds off, %.0f on", failure,
		peers[0].perRead(), peers[1].perRead(), peers[2].perRead())
	b.waits(failure, "attachments of a bug", peers[0].listed, peers[1].listed, peers[2].listed)
	b.waits(failure, "cached flag types", peers[0].cached, peers[1].cached, peers[2].cached)
	b.report.target("MB more memory at most on than off, candidate "+failure, float64(peers[2].most-peers[0].most)/(1<<20), shadowMemory)
	return nil
}

// live starts a process of each peer for a part of a round. A process keeps for its life how its memory happens to lie, which is worth some
// percent: only over several does that even out.
func (b *bench) live(ctx context.Context, peers []*shadowPeer, life int) error {
	defer func() {
		for _, each := range peers {
			if each.server != nil {
				each.stop()
				each.server = nil
			}
		}
	}()
	for i := range peers {
		p := peers[(i+life)%len(peers)]
		server, err := b.facade(ctx, p.is)
		if err != nil {
			return err
		}
		p.server = server
	}
	if err := b.inTurn(ctx, peers, shadowTurns/shadowLives*(life+1)); err != nil {
		return err
	}
	for _, each := range peers {
		most, err := each.memory("VmHWM")
		if err != nil {
			return err
		}
		each.most = max(each.most, most)
	}
	return nil
}

// inTurn loads the peers one after the other in short turns until each has as many as wanted, so that a machine that changes
// meanwhile changes for all. The first turns warm up, and those that the machine was not there for are done again.
func (b *bench) inTurn(ctx context.Context, peers []*shadowPeer, wanted int) error {
	length := b.length / shadowTurns
	for turn := range patience*shadowTurns + 1 {
		ready := true
		for i := range peers {
			p := peers[(i+turn)%len(peers)] // nobody is always the first
			if err := p.load(ctx, length, turn > 0); err != nil {
				return fmt.Errorf("%s: %w", p.is.name, err)
			}
			ready = ready && len(p.listed) >= wanted && len(p.cached) >= wanted
		}
		if ready {
			break
		}
	}
	for _, p := range peers {
		if len(p.listed) == 0 || len(p.cached) == 0 {
			return errNeverQuiet
		}
	}
	return nil
}

// shadowPeer is one Portico, process after process, and what its clients waited, in milliseconds, by turn.
type shadowPeer struct {
	is             facade
	*server        // nil when none runs
	listed, cached [][]float64
	disturbed      int
	worked         time.Duration
	reads          int
	most           int64 // bytes of memory
}

// load is one turn.
func (p *shadowPeer) load(ctx context.Context, length time.Duration, counts bool) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	reads := 0
	for path, into := range map[string]*[][]float64{shadowPath: &p.listed, hotPath: &p.cached} {
		took, quiet, err := pacedTurn(ctx, p.url(path), length)
		if err != nil {
			return err
		}
		reads += len(took)
		switch {
		case counts && quiet:
			*into = append(*into, took)
		case counts:
			p.disturbed++
		}
	}
	after, err := p.cpu()
	if err == nil && counts {
		p.worked, p.reads = p.worked+after-before, p.reads+reads
	}
	return err
}

// perRead gives microseconds of CPU, those of disturbed turns too: it hardly depends on who else uses the machine.
func (p *shadowPeer) perRead() float64 { return float64(p.worked.Microseconds()) / float64(p.reads) }

// waits prints what clients waited, by turn, with the shadow off, off too and on.
func (b *bench) waits(failure, what string, off, too, on [][]float64) {
	without := slices.Concat(off, too)
	for _, share := range []struct {
		name  string
		share float64
		most  float64
	}{{"p50", .50, 1.05}, {"p99", .99, 1.10}} {
		b.report.say("%s, %s of %d and %d reads: %.3f off, %.3f on", what, share.name, len(slices.Concat(without...)),
			len(slices.Concat(on...)), quantile(without, share.share), quantile(on, share.share))
		b.report.say("  off by off %.3f (at 95 %%: %s), on by off %.3f (at 95 %%: %s)", quantile(too, share.share)/quantile(off, share.share),
			ratioBetween(too, off, share.share), quantile(on, share.share)/quantile(without, share.share), ratioBetween(on, without, share.share))
		b.report.target(fmt.Sprintf("%s, %s on by off, candidate %s", what, share.name, failure),
			quantile(on, share.share)/quantile(without, share.share), share.most)
	}
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
