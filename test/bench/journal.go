package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// journalClients each write attachments of a bug of their own, since writes of one bug are made one at a time.
	journalClients = 4
	// besideWrites is how many writes a second there are beside reads.
	besideWrites = 20
	ownCPU       = "small write, CPU microseconds"
	copiedCPU    = "small write and its copy, CPU microseconds"
	ownP50       = "small write, copying paused, p50 ms"
	copiedP50    = "small write, p50 ms"
)

// journalReads are the reads that a journal must not slow down.
var journalReads = []struct{ name, path string }{{"cached read", hotPath}, {"uncached read", ordinaryPath}}

// journal compares a Portico that records and copies all writes and translates ids with one that does neither. Both have two trackers and SQLite.
// Reads are measured while nothing is left to be copied, and again beside writes. Writes are measured by themselves, since a copy is a second call with
// reads of its own, and again with their copies until the last one is made.
func journal(ctx context.Context, b *bench) error {
	b.report.title("journal: writes recorded and copied, ids translated, SQLite")
	var t table
	for life := range b.rounds {
		if err := b.journalLife(ctx, &t, life); err != nil {
			return err
		}
	}
	t.print(&b.report)
	for _, what := range journalReads {
		t.check(&b.report, goal{row: what.name + ", CPU microseconds", by: offName, bound: 1.1})
	}
	off, _ := t.median(copiedP50, offName)
	t.check(&b.report, goal{row: ownCPU, by: offName, bound: 1.5}, goal{row: copiedP50, bound: off + 10})
	return nil
}

// journalLife starts a process of each set-up, with trackers of its own, and loads them in turns.
func (b *bench) journalLife(ctx context.Context, t *table, life int) error {
	var servers, trackers []*server
	defer func() {
		for _, each := range append(servers, trackers...) {
			each.stop()
		}
	}()
	for _, name := range []string{offName, porticoName} {
		var pair [2]*server
		for i := range pair {
			one, err := b.tracker(ctx)
			if err != nil {
				return err
			}
			pair[i], trackers = one, append(trackers, one)
		}
		place := filepath.Join(b.dir, fmt.Sprintf("journal-%s-%d", name, life))
		more, err := journalConfig(name, place)
		if err != nil {
			return err
		}
		one, err := b.facade(ctx, facade{
			name: name, tracker: pair[0].url("/"), redis: "embedded", level: "warn", candidate: pair[1].url("/"), state: place + ".db", more: more,
		})
		if err != nil {
			return err
		}
		servers = append(servers, one)
	}
	return inTurns(t, life, servers, func(t *table, of *server) error { return b.journalTurn(ctx, t, of) })
}

// journalConfig returns the sections of one set-up, whose files begin with place.
func journalConfig(name, place string) ([]string, error) {
	if name == offName {
		return []string{"canary: {sample: 0}", "switchover: {rules: [{name: all, reads: old, writes: old}]}"}, nil
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	if err := os.WriteFile(place+".key", []byte(base64.StdEncoding.EncodeToString(secret)), 0o600); err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return []string{"canary: {sample: 0}", "switchover:", "  ids: {attachment: {mode: offset}}",
		fmt.Sprintf("  journal: {key_file: %q, spool: %q}", place+".key", place+".spool"),
		"  rules: [{name: all, reads: old, writes: old, replicate: true}]"}, nil
}

// journalTurn loads one server with each read and with writes, for the same time.
func (b *bench) journalTurn(ctx context.Context, t *table, of *server) error {
	length := b.length / turns
	for _, what := range journalReads {
		read := func() (int, error) {
			l, err := b.load(ctx, journalClients, length, of.url(what.path))
			return l.count, err
		}
		err := of.perResponse(t, what.name+", CPU microseconds", read)
		if err == nil {
			err = of.perResponse(t, what.name+" beside writes, CPU microseconds", func() (int, error) {
				all, err := together(2, func(n int) ([]int, error) {
					if n == 0 {
						count, err := read()
						return []int{count}, err
					}
					_, err := writeFor(ctx, of, length, 1, time.Second/besideWrites)
					return nil, err
				})
				if err != nil {
					return 0, err
				}
				return all[0], nil
			})
		}
		if err == nil {
			err = b.copied(ctx, of)
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", of.name, what.name, err)
		}
	}
	write := func(row string) (int, error) {
		responses, err := writeFor(ctx, of, length, journalClients, 0)
		if err == nil {
			t.add(row, of.name, percentile(milliseconds(responses), .5))
		}
		return len(responses), err
	}
	err := b.journalTool(ctx, of, "start")
	if err == nil {
		err = of.perResponse(t, ownCPU, func() (int, error) { return write(ownP50) })
	}
	if err == nil {
		err = b.journalTool(ctx, of, "resume")
	}
	if err == nil {
		err = b.copied(ctx, of)
	}
	if err != nil {
		return err
	}
	return of.perResponse(t, copiedCPU, func() (int, error) {
		count, err := write(copiedP50)
		if err == nil {
			err = b.copied(ctx, of)
		}
		return count, err
	})
}

// writeFor has clients make small writes for a time, one after the other with a pause between.
func writeFor(ctx context.Context, through *server, length time.Duration, clients int, pause time.Duration) ([]seen, error) {
	end := time.Now().Add(length)
	return together(clients, func(n int) (all []seen, err error) {
		own := client(1)
		defer own.CloseIdleConnections()
		for time.Now().Before(end) && err == nil {
			var one seen
			one, err = writeSmall(ctx, own, through, n)
			all = append(all, one)
			time.Sleep(pause)
		}
		return all, err
	})
}

// journalTool changes the journal of a server by a process of its own, or does nothing where there is no journal.
func (b *bench) journalTool(ctx context.Context, of *server, command string) error {
	if of.name == offName {
		return nil
	}
	_, err := b.journalCommand(ctx, of, command, "--actor", "bench", "--reason", "bench")
	return err
}

func (b *bench) journalCommand(ctx context.Context, of *server, arguments ...string) (string, error) {
	file := filepath.Join(b.dir, "portico-"+of.address[len("127.0.0.1:"):]+".yaml")
	out, err := exec.CommandContext(ctx, b.portico, append([]string{"migrate", "journal", "--config", file}, arguments...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("portico migrate journal %v: %w: %s", arguments, err, out)
	}
	return string(out), err
}

// copied waits until all writes are copied, and fails if one is parked.
func (b *bench) copied(ctx context.Context, of *server) error {
	for of.name != offName {
		out, err := b.journalCommand(ctx, of, "list")
		first, _, _ := strings.Cut(out, "\n")
		switch {
		case err != nil:
			return err
		case strings.Contains(first, "0 have an unknown outcome, 0 are parked") && strings.HasPrefix(first, "0 entries"):
			return nil
		case !strings.Contains(first, " 0 are parked"):
			return fmt.Errorf("a write is not copied: %s", out)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// perResponse adds the CPU time that the server took for each response of a load, in microseconds.
func (s *server) perResponse(t *table, row string, load func() (count int, err error)) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	count, err := load()
	if err != nil {
		return err
	}
	after, err := s.cpu()
	t.add(row, s.name, float64((after-before).Microseconds())/float64(count))
	return err
}

// writeSmall creates an attachment of some bytes. Its caller is not the one that reads, whose own writes every read would be held against.
func writeSmall(ctx context.Context, from *http.Client, through *server, n int) (seen, error) {
	bug := []int{1, 2, 3, 10}[n]
	body := fmt.Sprintf(`{"ids":[%d],"file_name":"note.txt","summary":"a note","content_type":"text/plain","data":"c21hbGwgY29udGVudA=="}`, bug)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, withKey(through.url(fmt.Sprintf("/rest/bug/%d/attachment", bug)), otherKeys[0]), strings.NewReader(body))
	if err != nil {
		return seen{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := do(from, r)
	if err == nil && response.status != http.StatusCreated {
		err = fmt.Errorf("a write got %d", response.status)
	}
	return response, err
}
