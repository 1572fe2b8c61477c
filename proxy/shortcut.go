package proxy

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// A read that is answered from memory costs less CPU time than net/http spends around it: a second goroutine that listens for
// the client's hanging up, half a dozen deadlines, two buffers (docs/benchmarks.md). So a connection that waits for its next
// request shows it to the handler first, in the goroutine that reads. The handler is the same one and does the same; but
// where it has no answer at hand it declines, and net/http gets the request as if nothing had been. The first request of a
// connection always goes to net/http, and so does all that is not a plain GET.

// shortcut is the short way from one connection to the handler.
type shortcut struct {
	handler http.Handler
	client  string
	pause   time.Duration
	desks   *sync.Pool
}

// longestShort is the longest request target that may take the short way. Longer ones may hold names that a cache does not
// take, so there is nothing at hand for them.
const longestShort = 255

// offer shows the connection of a request the short way to the handler of its server, if the server has a cache.
func (s *Server) offer(r *http.Request) {
	if s.options.Revalidate == nil {
		return
	}
	address, ours := r.Context().Value(http.LocalAddrContextKey).(*localAddress)
	if !ours || address.conn.short.Load() != nil {
		return
	}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.Handler != nil {
		address.conn.short.Store(&shortcut{server.Handler, r.RemoteAddr, s.options.ClientPause.Taking, address.conn.desks})
	}
}

// isShort tells whether a request may be answered on the short way: a read of flag types that a cache may answer. Where calls
// are counted it may not, since one that is declined would count twice.
func (s *Server) isShort(r *http.Request) bool {
	return s.options.Revalidate != nil && s.rates == nil && len(r.RequestURI) <= longestShort &&
		strings.HasPrefix(r.URL.Path, "/rest/flag_type/") && !wantsFresh(r.Header)
}

// answer answers a request that was read whole, or gives false when nothing has been done about it.
func (s *shortcut) answer(c *conn, text []byte) bool {
	d := s.desks.Get().(*desk)
	r := d.open(text, s.client)
	if r == nil {
		s.desks.Put(d)
		return false
	}
	c.answering.Lock()
	defer c.answering.Unlock() // also when the handler panics, as net/http closes the connection then
	s.handler.ServeHTTP(d, r)
	if !d.declined {
		c.reply(d.sealed(), s.pause)
	}
	done := !d.declined
	s.desks.Put(d)
	return done
}

// reply sends an answer of the short way, a long one in pieces as recorder.Write does. How it fails, the next read finds out.
func (c *conn) reply(answer []byte, pause time.Duration) {
	late := min(extension, pause/4)
	for len(answer) > largestPiece {
		if !c.send(answer[:largestPiece], pause, late) {
			return
		}
		answer = answer[largestPiece:]
	}
	c.send(answer, pause, late)
}

// largestPiece is more than nearly all answers of the short way, which go out in one write.
const largestPiece = 2 * mostUnsent

// send sends one piece, after moving the deadlines if that was longer ago than late.
func (c *conn) send(piece []byte, pause, late time.Duration) bool {
	now, idle := time.Now(), time.Duration(c.idle.Load())
	if past := now.Sub(c.extended); past > late || idle > 0 && past > idle/4 {
		c.extended = now
		_ = c.SetWriteDeadline(now.Add(pause))
		if idle > 0 {
			_ = c.Conn.SetReadDeadline(now.Add(idle))
		}
	}
	if c.closing.Load() { // whoever closes may have set its deadline before this one
		_ = c.Conn.SetWriteDeadline(c.parting.moment())
	}
	_, err := c.Conn.Write(piece)
	if err != nil {
		_ = c.Conn.Close()
	}
	return err == nil
}

// extension is how late a deadline may be moved: moving it for every answer costs more than the routing.
const extension = time.Second
