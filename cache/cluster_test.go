package cache

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
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

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	form := Redis{Addrs: []string{nodes[0].addr, nodes[1].addr, nodes[2].addr}}
	serves(t, form)
	serves(t, Redis{Addrs: []string{nodes[0].addr}, Cluster: true})
	// No other node takes the place of the one that has all keys.
	f, p := &fakeTracker{}, newPace(t)
	c := settled(t, openCache(t, f, Options{Tracker: "lost", Redis: form}))
	p.ask(c, product)
	nodes[owner(nodes, c.keys.generation)].kill()
	for range 50 {
		p.writeAndAsk(f, c)
	}
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
		p.writeAndAsk(f, c)
	}
	eventually(t, "the replica is used", func() bool { return p.ask(c, product).cache.Hit })
	if c.Status().Undelivered {
		t.Error("the changes are not delivered")
	}
}

func TestSentinelsDoNotKnowTheName(t *testing.T) {
	t.Parallel()
	l := &sharedLog{}
	c := openCache(t, &fakeTracker{}, Options{
		Tracker: "main", Redis: Redis{Addrs: []string{startSentinel(t, startServer(t))}, MasterName: "other"}, Logger: slog.New(slog.NewTextHandler(l, nil)),
	})
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit && a.cache.Detail == "redis" {
		t.Errorf("the answer is %+v", a)
	}
	eventually(t, "Redis counts as unreachable", func() bool { return strings.Contains(l.String(), "redis unreachable") })
	if !strings.Contains(l.String(), "check cache.redis.master_name") {
		t.Errorf("the log says %s", l)
	}
}
