package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// journalClients each write attachments of a bug of their own, since writes of one bug are made one at a time.
	journalClients = 4
	writeCPU       = "small write, CPU microseconds"
	writeP50       = "small write, p50 ms"
)

// journalReads are the reads that a journal must not slow down.
var journalReads = []struct{ name, path string }{{"cached read", hotPath}, {"uncached read", ordinaryPath}}

// journal compares a Portico that records and copies all writes and translates ids with one that does neither. Both have two trackers and SQLite.
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
	off, _ := t.median(writeP50, offName)
	t.check(&b.report, goal{row: writeCPU, by: offName, bound: 1.5}, goal{row: writeP50, bound: off + 10})
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
		more, err := b.journalConfig(name, life)
		if err != nil {
			return err
		}
		one, err := b.facade(ctx, facade{
			name: name, tracker: pair[0].url("/"), redis: "embedded", level: "warn", more: more,
			trackers: "  next:\n    url: " + pair[1].url("/") + "\n    dialect: bugzilla-5\n",
		})
		if err != nil {
			return err
		}
		servers = append(servers, one)
	}
	for turn := range turns + 1 {
		into := t
		if turn == 0 { // warms up
			into = new(table)
		}
		for i := range servers {
			if err := b.journalTurn(ctx, into, servers[(i+turn+life)%len(servers)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// journalConfig returns the sections of one set-up.
func (b *bench) journalConfig(name string, life int) ([]string, error) {
	place := filepath.Join(b.dir, fmt.Sprintf("journal-%s-%d", name, life))
	more := []string{"primary: main", "candidate: next", fmt.Sprintf("state: %q", "sqlite:"+place+".db"), "canary: {sample: 0}"}
	if name == offName {
		return append(more, "switchover:", "  rules: [{name: all, reads: old, writes: old}]"), nil
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	if err := os.WriteFile(place+".key", []byte(base64.StdEncoding.EncodeToString(secret)), 0o600); err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return append(more, "switchover:", "  ids: {attachment: {mode: offset}}",
		fmt.Sprintf("  journal: {key_file: %q, spool: %q}", place+".key", place+".spool"),
		"  rules: [{name: all, reads: old, writes: old, replicate: true}]"), nil
}

// journalTurn loads one server with each read and with writes, for the same time.
func (b *bench) journalTurn(ctx context.Context, t *table, of *server) error {
	length := b.length / turns
	for _, what := range journalReads {
		row := what.name + ", CPU microseconds"
		if err := of.perResponse(t, row, func() (int, error) {
			l, err := b.load(ctx, journalClients, length, of.url(what.path))
			return l.count, err
		}); err != nil {
			return fmt.Errorf("%s, %s: %w", of.name, what.name, err)
		}
	}
	return of.perResponse(t, writeCPU, func() (int, error) {
		end := time.Now().Add(length)
		responses, err := together(journalClients, func(n int) (all []seen, err error) {
			own := client(1)
			defer own.CloseIdleConnections()
			for time.Now().Before(end) && err == nil {
				var one seen
				one, err = writeSmall(ctx, own, of, n)
				all = append(all, one)
			}
			return all, err
		})
		if err == nil {
			t.add(writeP50, of.name, percentile(milliseconds(responses), .5))
		}
		return len(responses), err
	})
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
