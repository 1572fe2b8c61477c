package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// The settings of Portico in these tests, and how long a client waits before it calls that a hang. The deadline is
// their sum; the rest is for a machine that is busy with other things.
const (
	trackerTimeout = time.Second
	queueWait      = 500 * time.Millisecond
	hangLimit      = 12 * time.Second
)

// scene is everything that one kind of fault is tried on.
type scene struct {
	t                       testing.TB
	kind                    kind
	tracker, portico, redis *process.Process
	wire                    *wire
	relay                   *process.Relay
	// direct is where the tracker itself listens, front where Portico does.
	direct, front, redisAt string
	// forgotten is the journal of a tracker that was killed.
	forgotten []entry
}

func openScene(t testing.TB, k kind, seed uint64) *scene {
	t.Helper()
	s := &scene{t: t, kind: k}
	s.tracker, s.direct = startTracker(t)
	behind := s.direct
	if k.accept != nil || k.meet != nil {
		s.wire = startWire(t, s.direct, k, seed)
		behind = s.wire.address
	}
	s.redisAt = process.FreeAddress(t)
	s.redis = process.Redis(t, s.redisAt)
	cache := s.redisAt
	if k.redis {
		s.relay = process.StartRelay(t, s.redisAt)
		cache = s.relay.Address
	}
	s.portico, s.front = startPortico(t, behind, "redis://"+cache)
	return s
}

// must notes that a disturbance could not be made.
func (s *scene) must(err error) {
	if err != nil {
		s.t.Errorf("%s: %v", s.kind.name, err)
	}
}

// fetch reads something straight from the tracker.
func (s *scene) fetch(method, path, body string, into any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.direct+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// setFaults replaces those of the reference tracker.
func (s *scene) setFaults(faults ...string) {
	s.t.Helper()
	s.fetch(http.MethodPost, "/_tracker/faults", strings.Join(faults, "\n"), &struct{}{})
}

// large is the content of the fixture's large attachment, as a tracker without faults gives it.
var large = sync.OnceValues(func() (string, error) {
	answer := httptest.NewRecorder()
	tracker.New(tracker.Options{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/rest/bug/attachment/4?api_key="+tracker.FixtureKeys()["dev"], http.NoBody))
	var got attachmentsOf
	err := json.Unmarshal(answer.Body.Bytes(), &got)
	return got.Attachments["4"].Data, err
})

// journal waits until the tracker has nothing more to do and reads what it has done.
func (s *scene) journal() []entry {
	s.t.Helper()
	var last int
	for range 100 {
		now := s.readJournal()
		if last == len(now) {
			return now
		}
		last = len(now)
		time.Sleep(400 * time.Millisecond)
	}
	s.t.Fatal("the tracker does not come to rest")
	return nil
}

func (s *scene) readJournal() []entry {
	s.t.Helper()
	var all struct{ Journal []entry }
	s.fetch(http.MethodGet, "/_tracker/journal", "", &all)
	return slices.Concat(s.forgotten, all.Journal)
}

// emptyRedis takes everything from Redis.
func (s *scene) emptyRedis() error {
	conn, err := net.DialTimeout("tcp", s.redisAt, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprint(conn, "FLUSHALL\r\n"); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 5))
	return err
}

// hangUp makes requests whose clients do not wait for the answer.
func (s *scene) hangUp(n int) {
	for i := range n {
		conn, err := net.DialTimeout("tcp", s.front, time.Second)
		if err != nil {
			s.must(err)
			return
		}
		path := []string{"/rest/flag_type/TestProduct", "/rest/bug/attachment/1", "/rest/bug/7/attachment"}[i%3]
		_, _ = conn.Write(ask{method: "GET", path: path, user: "dev"}.bytes())
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		if i%2 == 0 {
			reset(conn)
		} else {
			_ = conn.Close()
		}
	}
}

// try puts n requests of load on the scene while its fault is on, then compares. rounds is how often processes are
// disturbed.
func (s *scene) try(n int64, rounds int, seed uint64) *book {
	s.t.Helper()
	content, err := large()
	if err != nil || len(content) < 1<<20 {
		s.t.Fatalf("the large attachment has %d bytes, %v", len(content), err)
	}
	l := &load{address: s.front, book: newBook(), kind: s.kind, seed: seed, large: content}
	if len(s.kind.faults) > 0 {
		s.setFaults(s.kind.faults...)
	}
	if s.kind.disturb != nil {
		over := make(chan struct{})
		l.until = over
		var disturbing sync.WaitGroup
		disturbing.Go(func() {
			defer close(over)
			for range rounds {
				s.kind.disturb(s)
			}
		})
		defer disturbing.Wait()
	}
	l.run(24, n)
	s.setFaults()
	l.book.compare(s.journal())
	if !s.kind.amnesia {
		s.compareState(l)
	}
	return l.book
}

// compareState looks for the writes of the clients in what the tracker holds.
func (s *scene) compareState(l *load) {
	s.t.Helper()
	held := map[string]int{}
	for _, bug := range bugs {
		var got struct {
			Bugs map[string]struct{ Comments []struct{ Text string } }
		}
		s.fetch(http.MethodGet, fmt.Sprintf("/rest/bug/%d/comment?api_key=%s", bug, tracker.FixtureKeys()["dev"]), "", &got)
		for _, b := range got.Bugs {
			for _, c := range b.Comments {
				held[c.Text[strings.LastIndexByte(c.Text, '\n')+1:]]++
			}
		}
	}
	for _, product := range []string{"4242", "TestProduct"} {
		var got struct{ Bug []struct{ Name string } }
		s.fetch(http.MethodGet, "/rest/flag_type/"+product+"?api_key="+tracker.FixtureKeys()["editor"], "", &got)
		for _, f := range got.Bug {
			held[f.Name]++
		}
	}
	for id, w := range l.book.writes {
		if !slices.Contains([]string{"flag_type.create", "attachment.create", "comment.create"}, w.op) {
			continue
		}
		switch n := held[id]; {
		case n > 1:
			l.book.violation("twice: the tracker holds %s %s %d times", w.op, id, n)
		case w.said == ok && n == 0:
			l.book.violation("missing: %s %s was acknowledged and the tracker does not hold it", w.op, id)
		case w.said == refused && n > 0:
			l.book.violation("false failure: %s %s was refused and the tracker holds it", w.op, id)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// startTracker runs `portico tracker`.
func startTracker(t testing.TB) (p *process.Process, address string) {
	t.Helper()
	address = process.FreeAddress(t)
	p, _ = process.Tracker(t, address, "--seed", "fixture", "--max-attachment", "20000")
	return p, address
}

// startPortico runs `portico serve` before a tracker, with settings such as "TIMEOUTS_CONNECT=1s".
func startPortico(t testing.TB, tracker, redis string, settings ...string) (p *process.Process, address string) {
	t.Helper()
	env := append([]string{
		"CACHE_REDIS=" + redis, "TRACKERS_MAIN_TIMEOUT=" + trackerTimeout.String(), "LIMITS_QUEUE_WAIT=" + queueWait.String(), "TIMEOUTS_CONNECT=1s",
	}, settings...)
	f := process.Serve(t, env, "serve", "--tracker", "http://"+tracker)
	return f.Process, strings.TrimPrefix(f.Clients, "http://")
}

// TestHungUpClients: a hundred clients that do not wait for their answers count as no failure of the tracker.
func TestHungUpClients(t *testing.T) {
	t.Parallel()
	s := openScene(t, kind{name: "aborts"}, 1)
	// A machine that is busy with other things must not look like a tracker that is.
	s.portico, s.front = startPortico(t, s.direct, "redis://"+s.redisAt, "TRACKERS_MAIN_TIMEOUT=10s")
	s.setFaults("kind=slow,delay=300ms")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { s.hangUp(10) })
	}
	all.Wait()
	c := client{address: s.front}
	defer c.close()
	for _, a := range []ask{
		{method: "GET", path: "/rest/flag_type/TestProduct", user: "dev"},
		{method: "GET", path: "/rest/bug/7/attachment", user: "dev"},
		{method: "GET", path: "/rest/bug/attachment/1", user: "dev"},
		{method: "POST", path: "/rest/flag_type", user: "editor", body: `{"name":"after","description":"d"}`},
		{method: "PUT", path: "/rest/flag_type/1", user: "editor", body: `{"description":"d"}`},
		{method: "POST", path: "/rest/bug/7/attachment", user: "dev", body: `{"ids":[7],"data":"YQ==","file_name":"f","summary":"s","content_type":"text/plain"}`},
		{method: "PUT", path: "/rest/bug/attachment/1", user: "dev", body: `{"summary":"s"}`},
		{method: "GET", path: "/rest/bug/7/comment", user: "dev"},
	} {
		if got := c.do(a); got.status != 200 && got.status != 201 {
			t.Errorf("%s %s after aborted requests: %d %s", a.method, a.path, got.status, got.body)
		}
	}
}
