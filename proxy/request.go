package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// requestContext is one request and its response. It is the http.ResponseWriter of the request, and belongs to its goroutine.
type requestContext struct {
	recorder
	server *Server
	r      *http.Request
	start  time.Time
	record Record
	span   Span // nil where requests are not traced
	// cause is what is logged of an error.
	cause error
	// values are those of the response's header, which share one allocation.
	values []string
	// path is the normal path, escaped, without the path of the tracker's address. The client wrote that before it if prefix is set.
	path, prefix string
	// trusted says that the request comes straight from a trusted proxy.
	trusted  bool
	resource resource
	segments httprouter.Params

	form   representation
	query  parameters
	caller upstream.Caller
	// blobs are the payloads that were read. content is that of an attachment create, nil without one.
	blobs   []*jsonblob.Blob
	content *jsonblob.Blob
	share   share
	// written are the members of a write without its credentials.
	written mapping.Members
	call    *callContext
	// sent says that a tracker may have got a write: whatever fails from here on, its outcome is not known.
	sent bool
	// unproven says that no tracker was seen to accept the credential yet.
	unproven bool
}

// newContext begins with what every response needs.
func (s *Server) newContext(w http.ResponseWriter, r *http.Request) *requestContext {
	rc := &requestContext{
		recorder: newRecorder(w, s.options.ClientPause.Taking), server: s, r: r, start: time.Now(),
		record: Record{ID: requestID(r.Header.Get(headerRequestID)), Operation: OpNone},
		form:   negotiate(r.Header), share: share{of: s.memory}, values: make([]string, 0, 8),
	}
	rc.caller = upstream.Caller{UserAgent: r.UserAgent(), RequestID: rc.record.ID}
	rc.caller.Address, rc.trusted = s.options.TrustedProxies.client(r)
	rc.set(headerRequestID, rc.record.ID)
	return rc
}

// set sets a field of the response's header. name is written as net/http keeps it, which Header.Set would check letter by letter
// each time.
func (rc *requestContext) set(name, value string) {
	rc.values = append(rc.values, value)
	at := len(rc.values)
	rc.Header()[name] = rc.values[at-1 : at : at]
}

// perform carries out one of the seven operations.
func (rc *requestContext) perform(op mapping.Operation) {
	rc.record.Operation = op
	setCommonHeaders(rc.Header())
	defer rc.close()
	err := rc.respond(op)
	switch {
	case err == nil:
	case rc.status == 0:
		rc.fail(err)
	default:
		// The response has begun: the only way left to tell the client is to break the connection.
		rc.record.Reason, rc.cause = cutReason(err), err
		panic(http.ErrAbortHandler)
	}
}

func (rc *requestContext) respond(op mapping.Operation) error {
	if rc.server.lacks(rc.r.Context(), op) {
		return mapping.NoFlagTypeWrites()
	}
	if err := rc.identify(); err != nil {
		return err
	}
	if !op.IsWrite() {
		if err := rc.admit(); err != nil {
			return err
		}
	}
	document, err := rc.carryOut(op)
	if rc.call != nil {
		rc.call.begun()
	}
	if err != nil {
		return err
	}
	rc.markProven()
	return errors.Join(rc.succeed(document), document.Close())
}

// identify reads the query, and for reads the caller. What a write says in its body comes later.
func (rc *requestContext) identify() (err error) {
	var isUTF8 bool
	rc.query, isUTF8 = parseQuery(rc.r.URL.RawQuery)
	if rc.form, err = rc.form.withCallback(rc.query.all("callback")...); err != nil {
		return err
	}
	switch {
	case !rc.record.Operation.IsWrite():
		rc.caller.Credentials, err = credentials(rc.r.Header, rc.query, nil)
	case !isUTF8:
		err = mapping.Refuse(mapping.CodeJSON, "The parameters in the address are not valid UTF-8.")
	}
	return err
}

// beginCall starts the call to the tracker.
func (rc *requestContext) beginCall() context.Context {
	options := &rc.server.options
	limit := options.ReadTimeout
	if rc.record.Operation.IsWrite() {
		limit, rc.sent = options.WriteTimeout, true
	}
	rc.call = newCallContext(rc.r.Context(), limit)
	if options.Revalidate != nil && rc.record.Operation == mapping.OpFlagTypes && wantsFresh(rc.r.Header) {
		return options.Revalidate(rc.call.Context)
	}
	return rc.call.Context
}

// close frees what the request holds.
func (rc *requestContext) close() {
	if rc.call != nil {
		rc.call.close()
	}
	// Their files have no names, so nothing is left behind.
	_ = jsonblob.CloseBlobs(append(rc.blobs, rc.content))
	rc.share.end()
}

// callContext is the context of one call to the tracker. Its deadline holds until the response begins: what follows is bounded by
// the pauses of either side instead, so that a large attachment to a slow client is not cut by the clock.
type callContext struct {
	context.Context
	timer   *time.Timer
	detach  func() bool
	release context.CancelFunc
}

// newCallContext starts the clock. The caller calls close when nothing of the call is in use any more.
func newCallContext(request context.Context, limit time.Duration) *callContext {
	clock := &callClock{Context: request, deadline: time.Now().Add(limit), never: make(chan struct{})}
	ctx, release := context.WithCancel(clock)
	return &callContext{ctx, time.AfterFunc(limit, clock.cancel), context.AfterFunc(request, clock.cancel), release}
}

// begun lifts the deadline: the response has begun.
func (c *callContext) begun() { c.timer.Stop() }

func (c *callContext) close() {
	c.timer.Stop()
	c.detach()
	c.release()
}

// callClock is what the context of a call is derived from. Package context takes the error of that from it. A context of package
// context in between saves a goroutine for each further one.
type callClock struct {
	context.Context // of the request
	deadline        time.Time
	never           chan struct{}
	cancel          func()
}

// Deadline implements context.Context.
func (c *callClock) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context. The context of the call uses AfterFunc instead.
func (c *callClock) Done() <-chan struct{} { return c.never }

// Err implements context.Context. It is called when the request or the time has ended.
func (c *callClock) Err() error { return cmp.Or(c.Context.Err(), context.DeadlineExceeded) }

// AfterFunc is called once by package context.
func (c *callClock) AfterFunc(f func()) (stop func() bool) {
	c.cancel = f
	return func() bool { return false }
}

// TrustedProxies are the networks whose X-Forwarded-* headers are believed.
type TrustedProxies []netip.Prefix

func (t TrustedProxies) contains(address netip.Addr) bool {
	return slices.ContainsFunc(t, func(network netip.Prefix) bool { return network.Contains(address) })
}

// client returns the address of the client, and whether the request comes straight from a trusted proxy. The address is the peer's,
// or, where trusted proxies stand between, the last one in X-Forwarded-For that is not itself one of them.
func (t TrustedProxies) client(r *http.Request) (client string, trusted bool) {
	address, known := hopAddress(r.RemoteAddr)
	if !known {
		return "", false
	}
	if trusted = t.contains(address); trusted {
		for _, item := range slices.Backward(strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")) {
			hop, known := hopAddress(strings.TrimSpace(item))
			if !known {
				break
			}
			if address = hop; !t.contains(hop) {
				break
			}
		}
	}
	return address.String(), trusted
}

// hopAddress reads an address as RemoteAddr and X-Forwarded-For have it: with a port or without, IPv6 in brackets or not.
func hopAddress(item string) (address netip.Addr, known bool) {
	if withPort, err := netip.ParseAddrPort(item); err == nil {
		return withPort.Addr().Unmap(), true
	}
	plain, err := netip.ParseAddr(strings.Trim(item, "[]"))
	return plain.Unmap(), err == nil
}

// origin returns the scheme and host under which the client knows Portico.
func (rc *requestContext) origin() (scheme, host string) {
	scheme, host = "http", rc.r.Host
	if rc.r.TLS != nil {
		scheme = "https"
	}
	if !rc.trusted {
		return scheme, host
	}
	if forwarded := strings.ToLower(lastItem(rc.r.Header.Get("X-Forwarded-Proto"))); forwarded == "http" || forwarded == "https" {
		scheme = forwarded
	}
	return scheme, cmp.Or(lastItem(rc.r.Header.Get("X-Forwarded-Host")), host)
}

// lastItem returns the last item of a list, which the nearest proxy added.
func lastItem(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}

// forwardingHeaders are those by which proxies name the client, besides X-Forwarded-*.
var forwardingHeaders = []string{
	"Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-For", "X-Original-Host", "X-Original-Proto",
	"Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Front-End-Https", "X-Url-Scheme", "X-Host",
}

// unsentHeaders never go to a tracker. net/http would send a POST with an Idempotency-Key twice on a connection that breaks. Servers that
// honour the URL headers would take another path than the one that was allowed to pass, and some frameworks take the override headers for
// the method. Web servers with CGI take Proxy for their own proxy. The body is here already, so that nothing is to be expected.
var unsentHeaders = []string{
	"Idempotency-Key", "X-Idempotency-Key", "Upgrade", "Connection", "X-Original-Url", "X-Rewrite-Url", "Expect", "Proxy",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// removeHeaders removes from a header what does not go to a tracker, and what only a trusted proxy may say of a client. A web server with
// CGI takes names with underscores for those with hyphens.
func removeHeaders(header http.Header, trusted bool) {
	for name := range header {
		forwarding := strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(forwardingHeaders, name)
		if strings.Contains(name, "_") || slices.Contains(unsentHeaders, name) || forwarding && !trusted {
			delete(header, name)
		}
	}
}
