package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const largeBytes = 50 << 20

// large sends an attachment of 50 MB up and down, through nginx and through Portico.
func large(ctx context.Context, b *bench) error {
	tracker, err := b.tracker(ctx, "--max-attachment", "100000")
	if err != nil {
		return err
	}
	defer tracker.stop()
	peer, err := b.nginx(ctx, "nginx", tracker.url("/"), true)
	if err != nil {
		return err
	}
	defer peer.stop()
	portico, err := b.facade(ctx, facade{name: "portico", tracker: tracker.url("/"), redis: "embedded", level: "info"})
	if err != nil {
		return err
	}
	defer portico.stop()
	b.report.title("an attachment of 50 MB (67 MB of base64), one client")
	b.report.say("%-10s %-6s %10s %12s %14s   (median of the rounds, memory the most of them)", "", "", "seconds", "CPU seconds", "memory +MB")
	figures := map[string]*transfer{}
	for range b.rounds {
		for _, each := range []*server{peer, portico} {
			for _, way := range []string{"up", "down"} {
				name := each.name + " " + way
				if figures[name] == nil {
					figures[name] = &transfer{}
				}
				if err := figures[name].measure(ctx, each, way); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	for _, way := range []string{"up", "down"} {
		theirs, ours := figures["nginx "+way], figures["portico "+way]
		b.report.say("%-10s %-6s %s", "nginx", way, theirs)
		b.report.say("%-10s %-6s %s", "portico", way, ours)
		b.report.say("portico by nginx, %s: time %.2f, CPU %.2f", way, ours.middle().took/theirs.middle().took, ours.middle().cpu/theirs.middle().cpu)
	}
	return nil
}

// transfer is what one way through one server took.
type transfer struct{ took, cpu, memory []float64 }

type transferred struct{ took, cpu, memory float64 }

func (t *transfer) middle() transferred {
	return transferred{spreadOf(t.took).middle, spreadOf(t.cpu).middle, spreadOf(t.memory).most}
}

func (t *transfer) String() string {
	m := t.middle()
	return fmt.Sprintf("%10.2f %12.2f %14.1f", m.took, m.cpu, m.memory)
}

// measure makes one transfer.
func (t *transfer) measure(ctx context.Context, through *server, way string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, withKey(through.url("/rest/bug/attachment/"+uploaded), otherKeys[0]), http.NoBody)
	if way == "up" {
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, withKey(through.url("/rest/bug/1/attachment"), otherKeys[0]), bytes.NewReader(upload()))
	}
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if err := through.forgetPeak(); err != nil {
		return err
	}
	held, err := through.memory("VmRSS")
	if err != nil {
		return err
	}
	before, err := through.cpu()
	if err != nil {
		return err
	}
	own := client(1)
	defer own.CloseIdleConnections()
	answer, err := do(own, r)
	if err != nil {
		return err
	}
	if answer.status/100 != 2 || way == "down" && answer.size < largeBytes {
		return fmt.Errorf("the answer was %d with %d bytes", answer.status, answer.size)
	}
	after, err := through.cpu()
	if err != nil {
		return err
	}
	most, err := through.memory("VmHWM")
	t.took = append(t.took, answer.took.Seconds())
	t.cpu = append(t.cpu, float64(after-before)/float64(time.Second))
	t.memory = append(t.memory, float64(max(most-held, 0))/(1<<20))
	return err
}

// uploaded is the id of the first attachment after those of the fixture.
const uploaded = "16"

// upload makes a new attachment, the same each time.
func upload() []byte {
	content := make([]byte, largeBytes)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(content) // it never fails
	body := append([]byte(`{"ids":[1],"file_name":"large.bin","summary":"large","content_type":"application/octet-stream","data":"`),
		base64.StdEncoding.EncodeToString(content)...)
	return append(body, `"}`...)
}
