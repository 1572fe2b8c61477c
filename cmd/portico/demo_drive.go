package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portico/upstream/canary"
)

// longestSettling is how long the demo waits until all comparisons are over.
const longestSettling = 2 * time.Minute

// drive makes requests, waits until they have been compared and prints the report.
func (d *demo) drive(ctx context.Context, scene *stage, base string) demoOutcome {
	rooms, leave := scene.enter()
	defer leave()
	driver := newDriver(base, rooms.canary)
	defer driver.client.CloseIdleConnections()
	began := time.Now()
	if err := driver.run(ctx, d.requests); err != nil {
		return demoOutcome{err: fmt.Errorf("drive the demo: %w", err)}
	}
	fmt.Fprintf(d.env.stdout, "Made %d requests, %d of them writes, in %v.\n\n", driver.made.Load(), driver.writes, time.Since(began).Round(time.Millisecond))
	settling, cancel := context.WithTimeout(ctx, longestSettling)
	defer cancel()
	if err := rooms.canary.Settle(settling); err != nil {
		return demoOutcome{err: err}
	}
	report, err := rooms.canary.Report(ctx)
	if err != nil {
		return demoOutcome{err: err}
	}
	return demoOutcome{report.Verdict, report.Text(d.env.stdout)}
}

// driver makes the requests of several clients.
type driver struct {
	base    string
	canary  *canary.Canary
	client  *http.Client
	callers []string
	made    atomic.Int64
	writes  int
}

// clientsAtATime is how many requests are under way together.
const clientsAtATime = 8

func newDriver(base string, compared *canary.Canary) *driver {
	d := &driver{base: base, canary: compared, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clientsAtATime}}}
	for _, user := range []string{"", "admin", "editor", "insider", "developer", "reviewer", "reporter", "ci-bot"} {
		key := ""
		if user != "" {
			key = demoKey(user)
		}
		d.callers = append(d.callers, key)
	}
	return d
}

// run makes so many requests. Reads come from several clients at once; between them
// there are some writes, each followed by a read of what was written.
func (d *driver) run(ctx context.Context, requests int) error {
	writes := demoWrites()
	stretch := max(requests/(len(writes)+1), 25)
	next := 0
	for next < requests {
		until := min(next+stretch, requests)
		if err := d.reads(ctx, next, until); err != nil {
			return err
		}
		next = until
		if d.writes < len(writes) && next+2 <= requests {
			if err := d.write(ctx, writes[d.writes]); err != nil {
				return err
			}
			next += 2
		}
	}
	return nil
}

// reads makes the reads of the given numbers.
func (d *driver) reads(ctx context.Context, from, until int) error {
	var next atomic.Int64
	next.Store(int64(from))
	failed := make(chan error, clientsAtATime)
	var clients sync.WaitGroup
	for range clientsAtATime {
		clients.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= until || len(failed) > 0 {
					return
				}
				d.calm(ctx, 1024)
				if _, err := d.ask(ctx, demoRead(i), d.callers[(i/3)%len(d.callers)], i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	clients.Wait()
	close(failed)
	return <-failed
}

// calm waits, not for ever, until few answers wait for being compared.
func (d *driver) calm(ctx context.Context, most int) {
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	for d.canary.Load().Queued > most {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// demoCall is one request.
type demoCall struct {
	method, path string
	query        url.Values
	body         string
}

// demoRead gives the read of a number: all three kinds in turn, of everything that
// the demo has and of some things that it has not.
func demoRead(i int) demoCall {
	turn := i / 3 / 8
	pick := func(list []string) string { return list[turn%len(list)] }
	call := demoCall{method: http.MethodGet}
	switch i % 3 {
	case 0:
		call.path = "/rest/flag_type/" + pick([]string{
			"WebShop", "WebShop/Search%2FRanking", "Mobile%20App", "Internal%20Tools", "WebShop/Checkout", "Mobile%20App/iOS", "No%20Such", "WebShop/Nothing",
		})
	case 1:
		call.path = "/rest/bug/" + pick([]string{"1", "2", "3", "4", "lost-basket", "8", "10", "12", "99"}) + "/attachment"
	default:
		call.path = "/rest/bug/attachment/" + pick([]string{"1", "2", "3", "4", "5", "6", "7", "8", "99"})
		call.query = url.Values{}
		switch turn % 4 {
		case 1:
			call.query.Set("include_fields", "id,summary,file_name")
		case 2:
			call.query.Set("exclude_fields", "data")
		}
	}
	return call
}

// demoWrite is a write with a read of what it changed.
type demoWrite struct {
	user  string
	write demoCall
	// bug is what the write adds an attachment to, attachment what it changes.
	bug, attachment string
}

// demoWrites touch each object once, so that a follower that lags has caught up
// before the next.
func demoWrites() []demoWrite {
	var list []demoWrite
	for _, id := range []string{"1", "4", "5"} {
		list = append(list, demoWrite{user: "developer", attachment: id, write: demoCall{
			method: http.MethodPut, path: "/rest/bug/attachment/" + id, body: `{"ids":[` + id + `],"summary":"a clearer summary"}`,
		}})
	}
	for _, bug := range []string{"4", "5", "6", "7", "9"} {
		list = append(list, demoWrite{user: "ci-bot", bug: bug, write: demoCall{
			method: http.MethodPost, path: "/rest/bug/" + bug + "/attachment",
			body: `{"ids":[` + bug + `],"data":"bG9nCg==","file_name":"build.log","summary":"log","content_type":"text/plain"}`,
		}})
	}
	return list
}

// write makes a write and reads what came of it at once. What the comparison does
// first is out of the way then, so that it looks before a follower has caught up.
func (d *driver) write(ctx context.Context, w demoWrite) error {
	d.calm(ctx, 0)
	key := demoKey(w.user)
	text, err := d.ask(ctx, w.write, key, d.writes)
	if err != nil {
		return err
	}
	d.writes++
	if w.attachment == "" {
		var created struct {
			IDs []json.Number `json:"ids"`
		}
		if err := json.Unmarshal(text, &created); err != nil || len(created.IDs) == 0 {
			return errors.New("an attachment was added and has no id")
		}
		w.attachment = created.IDs[0].String()
	}
	read := demoCall{method: http.MethodGet, path: "/rest/bug/attachment/" + w.attachment, query: url.Values{"include_fields": {"id,summary"}}}
	_, err = d.ask(ctx, read, key, d.writes)
	return err
}

// ask makes one request, with the caller's key in one of the forms that clients use.
func (d *driver) ask(ctx context.Context, call demoCall, key string, form int) ([]byte, error) {
	query := url.Values{}
	maps.Copy(query, call.query)
	request, err := http.NewRequestWithContext(ctx, call.method, d.base+call.path, strings.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	if key != "" {
		switch form % 4 {
		case 0:
			request.Header.Set("X-BUGZILLA-API-KEY", key)
		case 1:
			query.Set("Bugzilla_api_key", key)
		case 2:
			query.Set("api_key", key)
		default:
			request.Header.Set("Authorization", "Bearer "+key)
		}
	}
	request.URL.RawQuery = query.Encode()
	if call.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return d.answer(request)
}

// answer reads an answer to its end. Refusals are answers too; what Portico could
// not do is not.
func (d *driver) answer(request *http.Request) ([]byte, error) {
	answer, err := d.client.Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // a *url.Error shows the key in the query
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	d.made.Add(1)
	if answer.StatusCode >= http.StatusInternalServerError || request.Method != http.MethodGet && answer.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: status %d", request.Method, request.URL.Path, answer.StatusCode)
	}
	return text, nil
}
