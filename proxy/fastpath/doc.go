// Package fastpath serves requests on the connection that they came on, before net/http reads them.
//
// A cached read costs less CPU time than net/http spends around it: a second goroutine that waits for the client to hang up, half
// a dozen deadlines, two buffers (docs/benchmarks.md). So a connection that waits for its next request shows it to a Handler first,
// in the goroutine that reads. What the Handler declines, net/http gets as if nothing had happened. The first request of a
// connection always goes to net/http, and so does everything that is not one whole GET request, alone in one read of the socket,
// in a grammar that is much narrower than that of HTTP (RFC 9112).
//
// To attach it, wrap the innermost listener in Listener and call ConnState from the hook of the server. Nothing else depends on it.
package fastpath
