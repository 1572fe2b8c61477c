package cache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// wrongRedis is empty and well until it is told to give one answer to all commands of one
// name.
type wrongRedis struct {
	addr    string
	command string
	answer  string
	wrong   atomic.Bool
	given   atomic.Int64
}

func startWrongRedis(t *testing.T, command, answer string) *wrongRedis {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { socket.Close() })
	w := &wrongRedis{addr: socket.Addr().String(), command: command, answer: answer}
	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return w
}

func (w *wrongRedis) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		var parts int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &parts); err != nil {
			return
		}
		var words []string
		for range parts {
			var length int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
				return
			}
			word := make([]byte, length+2)
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			words = append(words, string(word[:length]))
		}
		if _, err := io.WriteString(conn, w.answerTo(words)); err != nil {
			return
		}
	}
}

func (w *wrongRedis) answerTo(words []string) string {
	name := strings.ToLower(words[0])
	if w.wrong.Load() && name == w.command {
		w.given.Add(1)
		return w.answer
	}
	switch name {
	case "mget":
		return fmt.Sprintf("*%d\r\n", len(words)-1) + strings.Repeat("$-1\r\n", len(words)-1)
	case "subscribe":
		return fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(words[1]), words[1])
	case "set", "setnx", "del", "pexpire", "zadd", "zremrangebyscore", "publish":
		return ":1\r\n"
	case "zrange":
		return "*0\r\n"
	case "hello":
		return "-ERR unknown command\r\n"
	}
	return "$-1\r\n"
}

// wrongAnswers are no answers to anything that the cache asks.
var wrongAnswers = []string{
	"*0\r\n", "*1\r\n$-1\r\n", "*-1\r\n", "%1\r\n+a\r\n+b\r\n", "*2\r\n:1\r\n:2\r\n", "*1\r\n:1\r\n",
	":9000000000000\r\n", "+9000000000000\r\n", "+OK\r\n", "*6\r\n:1\r\n", "*5\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
	"$9223372036854775800\r\n", "=9223372036854775800\r\n", "!9223372036854775800\r\n", "$9223372036854775807\r\n",
	"*9000000000000\r\n", "%9000000000000\r\n", "~9000000000000\r\n", ">9000000000000\r\n", "|9000000000000\r\n",
	strings.Repeat("*1\r\n", 1000), strings.Repeat("|0\r\n", 1000), strings.Repeat("*200000\r\n", 10),
	">1\r\n$9223372036854775800\r\n", "\r\n", "x\r\n", "$-7\r\n", "*?\r\n",
}

// TestWrongAnswersOfRedis: whatever comes instead of an answer costs that one answer.
func TestWrongAnswersOfRedis(t *testing.T) {
	for _, command := range []string{"mget", "subscribe", "get", "set", "zrange", "ping"} {
		for _, answer := range wrongAnswers {
			t.Run(fmt.Sprintf("%s %.30q", command, answer), func(t *testing.T) {
				t.Parallel()
				s, f := startWrongRedis(t, command, answer), &fakeTracker{}
				c := openCache(t, f, Options{Secret: []byte(strings.Repeat("s", 32)), Redis: Redis{Addrs: []string{s.addr}}})
				s.wrong.Store(true)
				c.news.hangUp() // so that it subscribes anew
				for range 5 {
					mustAsk(t, c, withKey("k"))
					mustWrite(t, c, withKey("k"))
					_, _ = c.Lookup(context.Background(), "P", "")
					_ = c.Probe(context.Background())
				}
				for range breakerLimit {
					_, _ = c.remote.texts(context.Background(), "one", "two", "three")
				}
				if command == "mget" && c.Status().Redis {
					t.Error("this counts as an answer")
				}
				if command == "subscribe" {
					eventually(t, "it is told so", func() bool { return s.given.Load() > 5 })
				}
			})
		}
	}
}

// TestPanicInACommandOfRedis: it counts as a failure of Redis, and what it says is kept to itself.
func TestPanicInACommandOfRedis(t *testing.T) {
	o, log := panicking()
	c := openCache(t, &fakeTracker{}, o)
	for range breakerLimit {
		err := c.remote.do(context.Background(), "read", func(context.Context) error { panic("the key is hunter2") })
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error is %v", err)
		}
	}
	if c.remote.breaker.allows() {
		t.Error("it does not count as a failure of Redis")
	}
	must(t, c.Close())
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "wrong_test.go") {
		t.Errorf("the log says %s", log)
	}
}

// TestLargestAnswerPasses: what the cache itself may store can be read again.
func TestLargestAnswerPasses(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, patient(on(s)))
	must(t, s.client.Set(context.Background(), "big", strings.Repeat("x", maxRemoteValue), time.Minute).Err())
	values, err := c.remote.texts(context.Background(), "big", "none", "big")
	must(t, err)
	if text, _ := values[2].(string); len(text) != maxRemoteValue {
		t.Errorf("it has %d bytes", len(text))
	}
	var members []any
	for i := range 10 * maxIndexed {
		members = append(members, fmt.Sprint("member", i))
	}
	must(t, s.client.SAdd(context.Background(), "list", members...).Err())
	all, err := c.remote.client.SMembers(context.Background(), "list").Result()
	if err != nil || len(all) != len(members) {
		t.Errorf("%d of %d members come, %v", len(all), len(members), err)
	}
}
