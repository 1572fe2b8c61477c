package e2e

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// link passes connections on to an address until it is cut. After that it keeps the connections and passes nothing.
type link struct {
	address string
	cut     chan struct{}
	pipes   sync.WaitGroup
}

func startLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{address: listener.Addr().String(), cut: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close(); l.pipes.Wait() })
	l.pipes.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.pipes.Go(func() { l.pass(out, in) })
			l.pipes.Go(func() { l.pass(in, out) })
		}
	})
	return l
}

// pass ends with either connection.
func (l *link) pass(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-l.cut:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
			_, _ = to.Write(buffer[:n])
		}
	}
}

// TestCutOffReplicaAsksTheTracker: a replica that Redis does not tell of the writes of others uses nothing for longer than
// local_ttl after Redis last confirmed that there were none.
func TestCutOffReplicaAsksTheTracker(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	_, base := startTracker(t, process.FreeAddress(t))
	l := startLink(t, redis)
	other := startFacade(t, base, "CACHE_REDIS=redis://"+redis)
	cutOff := startFacade(t, base, "CACHE_REDIS=redis://"+l.address, "CACHE_LOCAL_TTL=3s", "CACHE_TTL=10m")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "dev"}
	for _, f := range []*facade{other, cutOff} {
		process.Eventually(t, "a read is answered from the cache", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	}
	close(l.cut)
	cut := time.Now()
	// The replica is heard to be cut off, and has asked the tracker once more.
	process.Eventually(t, "the tracker is asked", func() bool { return cutOff.do(t, read).ok(t, 200).cacheStatus() != "hit" })
	other.put(t, "editor", "/rest/flag_type/1", `{"description":"new"}`).ok(t, 200)
	for {
		asked := time.Now()
		got := cutOff.do(t, read).ok(t, 200)
		if got.field(t, "1", "description") == "new" {
			break
		}
		if asked.Sub(cut) > 4*time.Second {
			t.Fatalf("%v after it was cut off the replica returns the old value, %q", asked.Sub(cut), got.header.Get("Cache-Status"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestEntryFromTheFutureIsDead: what a replica stored whose clock is ahead is not used, for a revoked key neither.
func TestEntryFromTheFutureIsDead(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	_, base := startTracker(t, process.FreeAddress(t))
	f := startFacade(t, base, "CACHE_REDIS=redis://"+redis, "CACHE_LOCAL_TTL=0s", "TIMEOUTS_REDIS=10s")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "dev"}
	process.Eventually(t, "a read is answered from the cache", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	for ahead, want := range map[time.Duration]string{time.Second: "hit", time.Hour: "fwd=miss"} {
		if moved := moveEntries(t, redis, ahead); moved != 1 {
			t.Fatalf("%d entries in Redis have a time that is known to this test", moved)
		}
		if got := f.do(t, read).ok(t, 200); got.cacheStatus() != want {
			t.Errorf("an entry that is %v ahead: %q, Age %q", ahead, got.header.Get("Cache-Status"), got.header.Get("Age"))
		}
	}
}

// moveEntries gives the entries in Redis a time as far ahead of now as a replica with a fast clock would. Of the stored form, which
// replicas share, it knows that the time is in milliseconds, as a varint, and that a CRC-32C is at the end.
func moveEntries(t *testing.T, address string, ahead time.Duration) (moved int) {
	t.Helper()
	client, ctx := redisClient(t, address), context.Background()
	for _, key := range client.Keys(ctx, "*").Val() {
		value, _ := client.Get(ctx, key).Bytes()
		for at := range max(len(value)-10, 0) {
			ms, n := binary.Uvarint(value[at:])
			if away := time.Until(time.UnixMilli(int64(ms))).Abs(); n != 6 || away > 2*time.Hour {
				continue
			}
			binary.PutUvarint(value[at:], uint64(time.Now().Add(ahead).UnixMilli()))
			end := len(value) - 4
			binary.LittleEndian.PutUint32(value[end:], crc32.Checksum(value[:end], crc32.MakeTable(crc32.Castagnoli)))
			if err := client.Set(ctx, key, value, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			moved++
			break
		}
	}
	return moved
}

// TestUnknownWritesKeepStaleIfError: while the tracker's database is away, writes of unknown outcome do not take from readers what
// was stored for that case. After the outage it is read anew, and after a write that was carried out it is used no more.
func TestUnknownWritesKeepStaleIfError(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	s := startScripted(t)
	env := []string{"CACHE_REDIS=redis://" + redis, "TIMEOUTS_REDIS=10s", "TIMEOUTS_CONNECT=10s"}
	one, two := startFacade(t, s.base, env...), startFacade(t, s.base, env...)
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	old := ""
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "a read is answered from the cache", func() bool {
			got := f.do(t, read).ok(t, 200)
			old = string(got.body)
			return got.cacheStatus() == "hit"
		})
	}
	s.failing.Store(true)
	for range 3 {
		got := one.put(t, "editor", "/rest/flag_type/1", `{"description":"lost"}`)
		if reason := got.header.Get("Portico-Error"); !strings.Contains(reason, "outcome=unknown") {
			t.Fatalf("the write is answered with %d, %q", got.status, reason)
		}
		for _, f := range []*facade{one, two} {
			process.Eventually(t, "reads are answered during the outage, and say so", func() bool {
				got := f.do(t, read).ok(t, 200)
				if string(got.body) != old {
					t.Fatalf("the read gives %d %.200s", got.status, got.body)
				}
				return strings.Contains(got.header.Get("Cache-Status"), "stale-if-error")
			})
		}
	}
	s.failing.Store(false)
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "entries are refreshed", func() bool {
			return !strings.Contains(f.do(t, read).ok(t, 200).header.Get("Cache-Status"), "stale-if-error")
		})
	}
	one.put(t, "editor", "/rest/flag_type/1", `{"description":"known"}`).ok(t, 200)
	s.failing.Store(true)
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "what was stored before a write that was carried out is used no more", func() bool {
			return f.do(t, read).status >= 500
		})
	}
}
