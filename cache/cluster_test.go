package cache

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
)

// startCluster starts three nodes and gives each a third of the slots.
func startCluster(t *testing.T) []*server {
	t.Helper()
	ctx, nodes := context.Background(), make([]*server, 3)
	for i := range nodes {
		_, bus, _ := net.SplitHostPort(freeAddr(t))
		nodes[i] = startServer(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
			"--cluster-require-full-coverage", "no")
		must(t, nodes[i].client.ClusterAddSlotsRange(ctx, i*16384/3, (i+1)*16384/3-1).Err())
		must(t, nodes[i].client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if i > 0 {
			host, port, _ := net.SplitHostPort(nodes[0].addr)
			must(t, nodes[i].client.Do(ctx, "CLUSTER", "MEET", host, port, nodes[0].args[3]).Err())
		}
	}
	eventually(t, "the cluster is whole", func() bool {
		for _, node := range nodes {
			info := node.client.ClusterInfo(ctx).Val()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_assigned:16384") ||
				!strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return nodes
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addrs(nodes []*server) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, node.addr)
	}
	return all
}

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	serves(t, Redis{Addrs: addrs(nodes)})
	serves(t, Redis{Addrs: addrs(nodes[:1]), Cluster: true})
	t.Run("reshard", func(t *testing.T) { reshardedUnderReads(t, nodes) })
	t.Run("node lost", func(t *testing.T) { nodeLostUnderReads(t, nodes) })
}

// reshardedUnderReads moves the slot of all keys from node to node, key by key,
// while there are reads and writes.
func reshardedUnderReads(t *testing.T, nodes []*server) {
	f, p := &fakeTracker{}, newPace(t)
	options := Options{Tracker: t.Name(), Redis: Redis{Addrs: addrs(nodes)}}
	c := settled(t, openCache(t, f, options))
	stop := make(chan struct{})
	moved := make(chan error, 1)
	go func() { moved <- reshard(nodes, c.keys.generation, 6, stop) }()
	defer close(stop)
	for done := false; !done; {
		p.ask(c, product)
		p.ask(c, mapping.FlagTypesRequest{Product: "P", Component: strconv.Itoa(p.reads % 50)})
		if p.reads%10 == 0 {
			mustWrite(t, c, withKey("k"))
		}
		if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write to %s the read gives %s, %+v, %+v", f.now(), a.text, a.cache, c.Status())
		}
		select {
		case err := <-moved:
			must(t, err)
			done = true
		default:
		}
	}
	eventually(t, "the cluster is used again", func() bool { return p.ask(c, product).cache.Hit })
}

// reshard moves the slot of a key to the next node several times.
func reshard(nodes []*server, key string, times int, stop chan struct{}) error {
	ctx := context.Background()
	slot := int(nodes[0].client.ClusterKeySlot(ctx, key).Val())
	for range times {
		from := owner(nodes, key)
		to := (from + 1) % len(nodes)
		ids := []string{nodes[from].client.ClusterMyID(ctx).Val(), nodes[to].client.ClusterMyID(ctx).Val()}
		if err := nodes[to].client.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0]).Err(); err != nil {
			return err
		}
		if err := nodes[from].client.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1]).Err(); err != nil {
			return err
		}
		if err := migrate(nodes[from], nodes[to], slot); err != nil {
			return err
		}
		for _, node := range []*server{nodes[to], nodes[from], nodes[(to+1)%len(nodes)]} {
			if err := node.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[1]).Err(); err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// owner is the node that has a key.
func owner(nodes []*server, key string) int {
	for i, node := range nodes {
		if _, moved := redis.IsMovedError(node.client.Get(context.Background(), key).Err()); !moved {
			return i
		}
	}
	return 0
}

func migrate(from, to *server, slot int) error {
	ctx := context.Background()
	_, port, _ := net.SplitHostPort(to.addr)
	for {
		keys, err := from.client.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		err = from.client.Do(ctx, "MIGRATE", "127.0.0.1", port, keys[0], 0, 1000, "REPLACE").Err()
		if err != nil && err != redis.Nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// nodeLostUnderReads kills the node that has all keys. No other one takes its place.
func nodeLostUnderReads(t *testing.T, nodes []*server) {
	f, p := &fakeTracker{}, newPace(t)
	c := settled(t, openCache(t, f, Options{Tracker: t.Name(), Redis: Redis{Addrs: addrs(nodes)}}))
	p.ask(c, product)
	nodes[owner(nodes, c.keys.generation)].kill()
	for range 50 {
		mustWrite(t, c, withKey("k"))
		if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write to %s the read gives %s, %+v, %+v", f.now(), a.text, a.cache, c.Status())
		}
	}
}

// startSentinel watches a server under the name main.
func startSentinel(t *testing.T, primary *server) string {
	t.Helper()
	addr, dir := freeAddr(t), t.TempDir()
	_, port, _ := net.SplitHostPort(addr)
	_, primaryPort, _ := net.SplitHostPort(primary.addr)
	file := filepath.Join(dir, "sentinel.conf")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 2000\n", port, dir, primaryPort), 0o600))
	cmd := exec.Command("redis-server", file, "--sentinel")
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	ctx, primary, replica := context.Background(), startServer(t), startServer(t)
	host, port, _ := net.SplitHostPort(primary.addr)
	must(t, replica.client.Do(ctx, "REPLICAOF", host, port).Err())
	addr := startSentinel(t, primary)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer sentinel.Close()
	eventually(t, "the Sentinel knows the replica", func() bool {
		replicas, err := sentinel.Replicas(ctx, "main").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	form := Redis{Addrs: []string{addr}, MasterName: "main"}
	serves(t, form)

	f, p := &fakeTracker{}, newPace(t)
	c := settled(t, openCache(t, f, Options{Tracker: t.Name(), Redis: form}))
	p.ask(c, product)
	primary.kill()
	failedOver := func() bool {
		role, err := replica.client.Do(ctx, "ROLE").Slice()
		return err == nil && role[0] == "master"
	}
	for !failedOver() {
		mustWrite(t, c, withKey("k"))
		if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write to %s the read gives %s, %+v, %+v", f.now(), a.text, a.cache, c.Status())
		}
	}
	eventually(t, "the replica is used", func() bool { return p.ask(c, product).cache.Hit })
	if c.Status().Undelivered {
		t.Error("the changes are not delivered")
	}
}
