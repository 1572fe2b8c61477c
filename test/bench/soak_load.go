package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
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
			return http.MethodGet, fmt.Sprintf("%s/absent-%d", hotPath, n), ""
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
	// seen counts responses by ingredient, status and, where Portico made them, reason.
	seen map[string]map[string]int
}

// run begins all of it; work is done soon after ctx.
func (m *mixture) run(ctx context.Context, work *sync.WaitGroup) {
	for _, each := range ingredients() {
		m.mu.Lock()
		m.seen[each.name] = map[string]int{}
		m.mu.Unlock()
		var count atomic.Int64
		for range each.clients {
			work.Go(func() {
				from := client(1)
				defer from.CloseIdleConnections()
				for sleep(ctx, each.pause) {
					response := m.once(context.WithoutCancel(ctx), from, each, count.Add(1))
					m.mu.Lock()
					m.seen[each.name][response]++
					m.mu.Unlock()
				}
			})
		}
	}
}

// once makes one request and returns its status and reason, or "none".
func (m *mixture) once(ctx context.Context, from *http.Client, of ingredient, n int64) string {
	if of.hangUp > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, of.hangUp)
		defer leave()
	}
	method, path, body := of.request(n)
	request, err := http.NewRequestWithContext(ctx, method, withKey("http://"+m.address+path, of.as), strings.NewReader(body))
	if err != nil {
		return "none"
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := from.Do(request)
	if err != nil {
		return "none"
	}
	_, err = io.Copy(io.Discard, response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return "none"
	}
	reason, _, _ := strings.Cut(response.Header.Get("Portico-Error"), ";")
	return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", reason))
}

// table prints the responses. Of each ingredient that waits for them most must be good ones, though the tracker is
// away now and then.
func (m *mixture) table(r *report) {
	for _, each := range ingredients() {
		total, good := 0, 0
		for said, count := range m.seen[each.name] {
			total += count
			if said[0] == '2' || said == "404" && each.name == "cold reads" {
				good += count
			}
		}
		r.say("%-12s %7d requests: %v", each.name, total, m.seen[each.name])
		if each.hangUp == 0 {
			r.hold(each.name+": most responses are good", 2*good > total)
		}
	}
}
