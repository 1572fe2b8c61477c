package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Keys of the fixture's users who may do more than read.
const (
	editorKey = "EditorKey0000000000000000000000000000000"
	devKey    = "DevKey0000000000000000000000000000000000"
)

// ingredient is one kind of request in the mixture.
type ingredient struct {
	name    string
	clients int
	pause   time.Duration
	// request makes the nth one.
	request func(n int64) (method, path, body string)
	as      string
	// hangUp is how long a client waits before it goes; 0 means for the answer.
	hangUp time.Duration
}

func ingredients() []ingredient {
	// Half a megabyte goes to a file on its way, and twice as much as base64 is below the tracker's limit.
	content := base64.StdEncoding.EncodeToString(make([]byte, 500_000))
	read := func(path string) func(int64) (string, string, string) {
		return func(int64) (string, string, string) { return http.MethodGet, path, "" }
	}
	return []ingredient{
		{name: "hot reads", clients: 4, pause: 10 * time.Millisecond, as: key, request: read(hotPath)},
		{name: "cold reads", clients: 2, pause: 50 * time.Millisecond, as: key, request: func(n int64) (string, string, string) {
			return http.MethodGet, fmt.Sprintf("%s/nobody-%d", hotPath, n), ""
		}},
		{name: "attachments", clients: 2, pause: 100 * time.Millisecond, as: key, request: read(listPath)},
		{name: "uploads", clients: 1, pause: 500 * time.Millisecond, as: devKey, request: func(n int64) (string, string, string) {
			return http.MethodPost, "/rest/bug/7/attachment", fmt.Sprintf(
				`{"ids":[7],"data":%q,"file_name":"f%d","summary":"s","content_type":"application/octet-stream"}`, content, n)
		}},
		{name: "writes", clients: 1, pause: 200 * time.Millisecond, as: editorKey, request: func(n int64) (string, string, string) {
			return http.MethodPut, "/rest/flag_type/1", fmt.Sprintf(`{"description":"number %d"}`, n)
		}},
		{name: "hang-ups", clients: 2, pause: 50 * time.Millisecond, as: devKey, hangUp: 2 * time.Millisecond, request: read(listPath)},
		{name: "passing", clients: 1, pause: 100 * time.Millisecond, as: key, request: read("/rest/bug/1/comment")},
	}
}

// mixture is everything at once.
type mixture struct {
	address string
	mu      sync.Mutex
	// seen counts answers by ingredient, status and, where Portico made them, reason.
	seen map[string]map[string]int
	err  error
}

func newMixture(address string) *mixture {
	return &mixture{address: address, seen: map[string]map[string]int{}}
}

// fail keeps the first mishap that is not the program's.
func (m *mixture) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, err)
}

func (m *mixture) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *mixture) note(name, said string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[name] == nil {
		m.seen[name] = map[string]int{}
	}
	m.seen[name][said]++
}

// run begins all of it; work is done soon after ctx.
func (m *mixture) run(ctx context.Context, work *sync.WaitGroup) {
	for _, each := range ingredients() {
		var count atomic.Int64
		for range each.clients {
			work.Go(func() {
				from := client(1)
				defer from.CloseIdleConnections()
				for sleep(ctx, each.pause) {
					m.note(each.name, m.once(ctx, from, each, count.Add(1)))
				}
			})
		}
	}
}

// noAnswer is what is noted where there was none.
const noAnswer = "none"

// once makes one request and tells what was answered.
func (m *mixture) once(ctx context.Context, from *http.Client, of ingredient, n int64) string {
	method, path, body := of.request(n)
	address := withKey("http://"+m.address+path, of.as)
	if of.hangUp > 0 {
		m.abandon(ctx, address, of.hangUp)
		return noAnswer
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, address, strings.NewReader(body))
	if err != nil {
		m.fail(err)
		return noAnswer
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := from.Do(request)
	if err != nil {
		return noAnswer
	}
	_, err = io.Copy(io.Discard, response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return noAnswer
	}
	reason, _, _ := strings.Cut(response.Header.Get("Portico-Error"), ";")
	return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", reason))
}

// abandon asks and goes without waiting for the answer.
func (m *mixture) abandon(ctx context.Context, address string, after time.Duration) {
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), "tcp", m.address)
	if err != nil {
		m.fail(fmt.Errorf("connect to hang up: %w", err))
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET "+strings.TrimPrefix(address, "http://"+m.address)+" HTTP/1.1\r\nHost: x\r\n\r\n")
	sleep(ctx, after)
}

// table prints what was answered. Of each ingredient that waits for answers most must be good ones, though the tracker is
// away now and then.
func (m *mixture) table(r *report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range ingredients() {
		total, good := 0, 0
		var parts []string
		counts := m.seen[each.name]
		for _, said := range slices.Sorted(maps.Keys(counts)) {
			total += counts[said]
			if said[0] == '2' || said == "404" && each.name == "cold reads" {
				good += counts[said]
			}
			parts = append(parts, fmt.Sprintf("%s: %d", said, counts[said]))
		}
		r.say("%-12s %7d requests; %s", each.name, total, strings.Join(parts, ", "))
		if each.hangUp == 0 {
			r.hold(each.name+": most were answered well", 2*good > total)
		}
	}
}
