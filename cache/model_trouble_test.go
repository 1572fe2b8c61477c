package cache

import (
	"context"
	"time"
)

// trouble does something bad to Redis or to the way there, and makes it good again.
func (w *world) trouble() {
	length := time.Duration(10+w.rand(200)) * time.Millisecond
	p := w.processes[w.rand(2)]
	switch w.rand(8) {
	case 0:
		w.server.kill()
		time.Sleep(length)
		w.server.start()
	case 1:
		w.server.pause()
		time.Sleep(length)
		w.server.resume()
	case 2:
		w.server.client.FlushAll(context.Background())
	case 3:
		w.server.client.ClientKillByFilter(context.Background(), "TYPE", "pubsub")
	case 4:
		p.proxy.Down(true)
		time.Sleep(length)
		p.proxy.Down(false)
	case 5:
		p.proxy.Delay.Store(int64(length / 4))
		time.Sleep(length)
		p.proxy.Delay.Store(0)
	case 6:
		w.rollBack(length)
	case 7: // peace
		time.Sleep(3 * length)
	}
	time.Sleep(time.Duration(w.rand(300)) * time.Millisecond)
}

// rollBack puts an old generation back, as a replica that lagged would. What the
// other process may give is not promised then until each has looked again.
func (w *world) rollBack(length time.Duration) {
	ctx, key := context.Background(), w.processes[0].cache.keys.generation
	old, err := w.server.client.Get(ctx, key).Result()
	if err != nil || w.rand(3) > 0 {
		return
	}
	time.Sleep(length)
	w.rolledBack.Store(time.Now().UnixNano())
	w.server.client.Set(ctx, key, old, 0)
	w.rolledBack.Store(time.Now().UnixNano())
}
