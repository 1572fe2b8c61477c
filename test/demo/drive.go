package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"portico/upstream/canary"
)

// clientsAtATime is how many requests of the driver are under way together.
const clientsAtATime = 8

// Driver makes the requests of several clients.
type Driver struct {
	base   string
	canary *canary.Canary
	client *http.Client
	made   atomic.Int64
	writes int
}

// NewDriver makes requests below a base URL, at the pace at which their responses are compared.
func NewDriver(base string, compared *canary.Canary) *Driver {
	return &Driver{base: base, canary: compared, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clientsAtATime}}}
}

// Made is the number of requests so far.
func (d *Driver) Made() int64 { return d.made.Load() }

// Writes is the number of writes among them, for the time after Run.
func (d *Driver) Writes() int { return d.writes }

// Run makes so many requests. Reads come from several clients at once; between them there are some writes, each followed by a
// read of what was written.
func (d *Driver) Run(ctx context.Context, requests int) error {
	defer d.client.CloseIdleConnections()
	writes := allWrites()
	stretch := max(requests/(len(writes)+1), 25)
	for next := 0; next < requests; {
		until := min(next+stretch, requests)
		reads, reading := errgroup.WithContext(ctx)
		reads.SetLimit(clientsAtATime)
		for ; next < until; next++ {
			call := readOf(next)
			reads.Go(func() error {
				d.calm(reading, 1024)
				_, err := d.call(reading, call)
				return err
			})
		}
		if err := reads.Wait(); err != nil {
			return err
		}
		if d.writes < len(writes) && next+2 <= requests {
			if err := d.write(ctx, writes[d.writes]); err != nil {
				return err
			}
			next += 2
		}
	}
	return nil
}

// calm waits, but not for ever, until few responses wait for being compared.
func (d *Driver) calm(ctx context.Context, maxQueued int) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for d.canary.Load().Queued > maxQueued && ctx.Err() == nil {
		time.Sleep(2 * time.Millisecond)
	}
}

// clientRequest is one request; without a user it has no credential.
type clientRequest struct{ user, method, path, body string }

// readOf is the read of a number: all three kinds in turn, of everything that the demo has and of some things that it does not
// have.
func readOf(i int) clientRequest {
	turn := i / 3 / 8
	pick := func(turn int, list ...string) string { return list[turn%len(list)] }
	call := clientRequest{method: http.MethodGet, user: pick(i/3, "", "admin", "editor", "insider", "developer", "reviewer", "reporter", "ci-bot")}
	switch i % 3 {
	case 0:
		call.path = "/rest/flag_type/" + pick(turn,
			"WebShop", "WebShop/Search%2FRanking", "Mobile%20App", "Internal%20Tools", "WebShop/Checkout", "Mobile%20App/iOS", "No%20Such", "WebShop/Nothing")
	case 1:
		call.path = "/rest/bug/" + pick(turn, "1", "2", "3", "4", "lost-basket", "8", "10", "12", "99") + "/attachment"
	default:
		call.path = "/rest/bug/attachment/" + pick(turn, "1", "2", "3", "4", "5", "6", "7", "8", "99") +
			pick(turn, "", "?include_fields=id,summary,file_name", "?exclude_fields=data", "")
	}
	return call
}

// allWrites touch each object once, so that a follower that lags has caught up before the next.
func allWrites() []clientRequest {
	var list []clientRequest
	for _, id := range []string{"1", "4", "5"} {
		list = append(list, clientRequest{"developer", http.MethodPut, "/rest/bug/attachment/" + id, `{"ids":[` + id + `],"summary":"a clearer summary"}`})
	}
	for _, bug := range []string{"4", "5", "6", "7", "9"} {
		list = append(list, clientRequest{"ci-bot", http.MethodPost, "/rest/bug/" + bug + "/attachment",
			`{"ids":[` + bug + `],"data":"bG9nCg==","file_name":"build.log","summary":"log","content_type":"text/plain"}`})
	}
	return list
}

// write makes a write and reads the attachment at once. What the comparison has to do first is out of the way then, so that it
// reads before a follower has caught up.
func (d *Driver) write(ctx context.Context, write clientRequest) error {
	d.calm(ctx, 0)
	text, err := d.call(ctx, write)
	if err != nil {
		return err
	}
	d.writes++
	read := clientRequest{write.user, http.MethodGet, write.path + "?include_fields=id,summary", ""}
	if write.method == http.MethodPost {
		var created struct {
			IDs []json.Number `json:"ids"`
		}
		if err := json.Unmarshal(text, &created); err != nil || len(created.IDs) == 0 {
			return errors.New("an attachment was added and has no id")
		}
		read.path = "/rest/bug/attachment/" + created.IDs[0].String() + "?include_fields=id,summary"
	}
	_, err = d.call(ctx, read)
	return err
}

// call makes one request and reads the response to its end. A refused read is a response too; a refused write or a failure of
// Portico is an error.
func (d *Driver) call(ctx context.Context, call clientRequest) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, call.method, d.base+call.path, strings.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	if call.user != "" {
		request.Header.Set("X-BUGZILLA-API-KEY", Key(call.user))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	d.made.Add(1)
	if response.StatusCode >= http.StatusInternalServerError || call.method != http.MethodGet && response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: status %d", call.method, call.path, response.StatusCode)
	}
	return text, nil
}
