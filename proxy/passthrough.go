package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// Passthrough says what happens to requests outside the seven operations. The zero value lets nothing through.
type Passthrough struct {
	// Target is the tracker of requests where Choose is nil. Without a Base nothing passes.
	Target
	// Prefixes are the paths that pass, "/" for all of them. A prefix ends where a segment does.
	Prefixes []string
	// Choose returns the target of one request by whether it may change something. It must not wait for a tracker.
	Choose func(write bool) *Target
	// FlagTypesChanging is called with every request with a credential that may change flag types; nil means that it is not
	// needed. It must make the call, which sends the request and says by its error what became of it, as the operations of
	// a Tracker do: nil for what was carried out, or may have been. The client gets the response when both have returned.
	FlagTypesChanging func(ctx context.Context, call func() error) error
	// Operations reports whether calls of the older interfaces that are operations are carried out as the operations of REST are, instead
	// of passing. Nil has all of them pass.
	Operations func() bool
	// Writes is told of each request that may change something before its target gets it: with its method and the pattern of its path, or the method
	// of an older interface. over is called before the client gets the response, with whether something may have been changed. Of a request without a
	// credential, which is mostly refused, it is told afterwards, and only if something may have been changed. Nil is not called.
	Writes func(ctx context.Context, target *Target, what string) (over func(written bool))
}

// allows reports whether a normal path may pass.
func (p *Passthrough) allows(path string) bool {
	return p.Base != nil && slices.ContainsFunc(p.Prefixes, func(prefix string) bool {
		return strings.HasPrefix(path+"/", strings.TrimSuffix(prefix, "/")+"/")
	})
}

const (
	// maxStoredInMemory is the size up to which a passing body stays in memory, if payloads of that size do.
	maxStoredInMemory = 64 << 10
	// maxCredentialsAt is how much of a passing body is searched for credentials.
	maxCredentialsAt = 1 << 20
	// maxKeyRefusal is more than a tracker says about a key that it refuses, in bytes.
	maxKeyRefusal = 64 << 10
)

// passing is a request on its way to a tracker.
type passing struct {
	*requestContext
	settings *Passthrough
	target   *Target
	// body are the credentials in the body of a REST request.
	body mapping.Members
	// script is what the tracker runs for the request. mayWrite says that the request may change something, as every one by a method that does not
	// only read: what a call of the older interfaces does is in its body. changesFlagTypes says that it may change flag types.
	script                     string
	mayWrite, changesFlagTypes bool
	// isOperation says that it is an operation in the form of an older interface, and method is the method of such a call.
	isOperation bool
	method      string
	// inBody says that it shows a credential in its body.
	inBody bool
	// bearerAsKey says that a bearer token was added to the query as an API key.
	bearerAsKey bool
}

// pass sends what is not one of the seven operations through, except paths that a tracker could read as others and methods that only
// an attacker needs.
func (rc *requestContext) pass() error {
	settings, method := &rc.server.options.Passthrough, rc.r.Method
	if method == http.MethodTrace || method == http.MethodConnect || misread(rc.path, !isReading(method)) || !settings.allows(rc.path) {
		return rc.noResource()
	}
	rc.record.Operation = OpPassthrough
	rc.query, _ = parseQuery(rc.r.URL.RawQuery)
	p := &passing{requestContext: rc, settings: settings, script: bugzilla.Script(rc.path)}
	p.readCaller()
	if err := rc.admit(); err != nil {
		return err
	}
	defer rc.close()
	stored, err := p.storeBody()
	if stored != nil {
		defer stored.Close()
	}
	var done bool
	if err == nil {
		done, err = p.operate(stored)
	}
	switch {
	case err != nil:
		return rc.bodyError(err)
	case done:
		return nil
	}
	return p.forward(stored)
}

// forward sends a request with a body, nil for none, to its tracker and copies the response. It never follows a redirect.
func (p *passing) forward(stored *jsonblob.Stored) error {
	p.target = &p.settings.Target
	if p.settings.Choose != nil {
		p.target = p.settings.Choose(p.mayWrite)
	}
	if err := p.mapKey(); err != nil {
		return err
	}
	ctx, reading := p.r.Context(), isReading(p.r.Method)
	if p.target.For != nil {
		ctx = p.target.For(ctx, OpPassthrough, p.caller, p.mayWrite && reading)
	}
	outgoing := p.r.WithContext(ctx)
	if stored != nil {
		outgoing.Body, outgoing.ContentLength, outgoing.TransferEncoding = stored, stored.Size(), nil
	}
	if p.target.Check != nil {
		if err := p.target.Check(ctx, p.path, p.query.all, p.isOperation); err != nil {
			return err
		}
	}
	p.sent = !reading
	reverse := httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p, BufferPool: p.server.copies, ModifyResponse: p.modifyResponse,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { p.fail(p.failure(r.Context(), err)) },
		ErrorLog:     slog.NewLogLogger(p.server.options.Logger.Handler(), slog.LevelDebug),
		// A response of known length goes out in one write where it comes at once. A part of it waits for the next one no longer than this.
		FlushInterval: 10 * time.Millisecond,
	}
	reverse.ServeHTTP(p, outgoing)
	p.markPassed()
	return nil
}

// FlushError is for http.ResponseController, by which httputil.ReverseProxy sends the header before the body. To a client of HTTP/1.0 a response
// without a length would look whole if it broke off then.
func (p *passing) FlushError() error {
	if p.bytes == 0 && !p.r.ProtoAtLeast(1, 1) {
		return nil
	}
	return p.control.Flush()
}

// readCaller reads the caller. Credentials that cannot be read are left to the tracker.
func (p *passing) readCaller() {
	body := p.body.Clone()
	p.caller.Credentials, _ = credentials(p.r.Header, p.query, &body)
}

// storeBody reads the client's body to its end before a tracker is asked. So a slow client holds none of the tracker's few slots, and
// every body has a length, because real trackers lose chunked ones (tracker-behaviour.md section 1). It returns nil for a request without
// a body, and what it has beside an error.
func (p *passing) storeBody() (*jsonblob.Stored, error) {
	if p.recorder.body == nil {
		return nil, p.inspect(http.NoBody)
	}
	body, err := p.boundedBody()
	if err != nil {
		return nil, err
	}
	stored, err := p.store(body)
	if err == nil {
		err = p.inspect(stored)
	}
	if err == nil {
		_, err = stored.Seek(0, io.SeekStart)
	}
	return stored, err
}

// store reads a body into memory or, where it is large or memory is scarce, into a file.
func (p *passing) store(body io.Reader) (*jsonblob.Stored, error) {
	options := p.splitOptions()
	options.Limits.BlobMemory, options.Size = min(options.Limits.BlobMemory, maxStoredInMemory), 0
	return jsonblob.Store(body, options)
}

// inspect finds the credentials in a body, and whether it may change flag types.
func (p *passing) inspect(body io.Reader) error {
	reading := isReading(p.r.Method)
	p.changesFlagTypes = bugzilla.PageChangesFlagTypes(p.script, p.r.Method, p.r.URL.RawQuery)
	p.mayWrite = !reading || p.changesFlagTypes
	p.isOperation = reading && bugzilla.IsRPC(p.script) && slices.ContainsFunc(p.query.all("method"), bugzilla.IsOperation)
	switch {
	case !reading && bugzilla.IsRPC(p.script):
		call, err := bugzilla.ReadCall(p.script, body)
		if err != nil {
			return &jsonblob.BlobError{Op: "read", Err: err}
		}
		p.changesFlagTypes = call.WritesFlagTypes && p.r.Method == http.MethodPost // by other methods no tracker takes calls
		p.inBody, p.isOperation, p.method = call.ShowsCredential, call.IsOperation, call.Method
	case p.changesFlagTypes, !reading && isREST(p.path):
		head, err := io.ReadAll(io.LimitReader(heldReader{body, p.requestContext}, maxCredentialsAt))
		if err != nil {
			return err
		}
		found := bodyCredentials(p.r.Header, head)
		p.inBody = len(found) > 0
		if isREST(p.path) {
			p.body = found
			p.readCaller()
		}
	}
	return nil
}

// rewrite makes the tracker's request of the client's. Hop-by-hop headers, those that Connection names among them, are
// gone already.
func (p *passing) rewrite(pass *httputil.ProxyRequest) {
	out, base := pass.Out, p.target.Base
	out.URL = &url.URL{Scheme: base.Scheme, Host: base.Host, RawQuery: p.r.URL.RawQuery}
	path := p.path
	if dialect := p.target.Dialect; dialect != nil && isBelow(path) {
		path = dialect(p.r.Context()).Below() + path
	}
	setEscapedPath(out.URL, p.target.basePath()+path)
	out.Host = base.Host
	removeHeaders(out.Header, p.trusted)
	out.Header.Set(headerRequestID, p.record.ID)
	if p.changesFlagTypes {
		out.Header.Set("Accept-Encoding", "identity") // since Portico reads the response, too
		if out.Method == http.MethodHead {            // only the body says what was done
			out.Method = http.MethodGet
		}
	}
	// What a client says of its own client counts only if it is a trusted proxy. X-Forwarded-For gets the client's address alone:
	// trackers count the last one for their rate limits.
	scheme, host := p.origin()
	out.Header.Set("X-Forwarded-For", p.caller.Address)
	out.Header.Set("X-Forwarded-Proto", scheme)
	out.Header.Set("X-Forwarded-Host", host)
	p.setCredentials(out)
}

// forwardingHeaders are those by which proxies name the client, besides X-Forwarded-*.
var forwardingHeaders = []string{
	"Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-For", "X-Original-Host", "X-Original-Proto",
	"Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Front-End-Https", "X-Url-Scheme", "X-Host",
}

// unsentHeaders never go to a tracker. net/http would send a POST with an Idempotency-Key twice on a connection that breaks. Servers that
// honour the URL headers would take another path than the one that was allowed to pass, and some frameworks take the override headers for
// the method. Web servers with CGI take Proxy for their own proxy. The body is here already, so that nothing is to be expected. Te is
// for one connection, and httputil.ReverseProxy leaves it.
var unsentHeaders = []string{
	"Idempotency-Key", "X-Idempotency-Key", "Upgrade", "Connection", "Te", "X-Original-Url", "X-Rewrite-Url", "Expect", "Proxy",
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

// RoundTrip implements http.RoundTripper. It tells Writes of a request that may change something.
func (p *passing) RoundTrip(r *http.Request) (*http.Response, error) {
	// A tracker may let callers in by a cookie of a gateway, of which Portico knows nothing.
	anonymous := !p.inBody && p.r.Header["Cookie"] == nil && p.caller.Anonymous()
	if p.settings.Writes == nil || !p.mayWrite || bugzilla.IsReading(p.method) {
		return p.tellAndSend(r, anonymous)
	}
	var over func(written bool)
	if !anonymous {
		over = p.settings.Writes(r.Context(), p.target, p.pattern())
	}
	response, err := p.tellAndSend(r, anonymous)
	written := err != nil && !upstream.NotSent(p.failure(p.r.Context(), err))
	if err == nil { // a tracker that refuses a request says so with a status of 4xx
		written = response.StatusCode/100 != 4 || response.StatusCode == http.StatusRequestTimeout
	}
	if anonymous && written {
		over = p.settings.Writes(r.Context(), p.target, p.pattern())
	}
	if over != nil {
		over(written)
	}
	return response, err
}

// tellAndSend sends a request. If that may change flag types it tells FlagTypesChanging what became of it before the client gets the response. A
// caller without a credential cannot change them, and must not be able to invalidate a cache.
func (p *passing) tellAndSend(r *http.Request, anonymous bool) (response *http.Response, err error) {
	tell := p.settings.FlagTypesChanging
	if tell == nil || !p.changesFlagTypes || anonymous {
		return p.send(r)
	}
	// A client that hangs up does not end the call: the tracker may carry it out, and its response says whether it did.
	ctx, end := upstream.Outlive(r.Context())
	defer end()
	r = r.WithContext(ctx)
	_ = tell(ctx, func() error {
		var outcome error
		if response, err = p.send(r); err == nil { //nolint:bodyclose // the caller closes it
			outcome, err = p.outcomeOf(response)
		}
		if err != nil {
			outcome = asError(p.failure(ctx, err), true)
		}
		return outcome
	})
	return response, err
}

// rpcMethod matches the methods of the older interfaces, and little that a client could have written.
var rpcMethod = regexp.MustCompile(`^[A-Z][A-Za-z]{1,20}\.[a-z_]{1,30}$`)

// firstSegments match the segments of a path that name a resource.
var firstSegments = regexp.MustCompile(`^/(rest/)?[^/]*`)

// pattern is the method and the path of a request without what could name an object or a user.
func (p *passing) pattern() string {
	if p.method != "" {
		if !rpcMethod.MatchString(p.method) {
			return p.script
		}
		return p.script + " " + p.method
	}
	kept := firstSegments.FindString(p.path)
	return p.r.Method + " " + kept + strings.Repeat("/{…}", min(strings.Count(p.path[len(kept):], "/"), 3))
}

// outcomeOf stores the body of a response, which may be long even for a refusal, and returns the outcome of the request.
func (p *passing) outcomeOf(response *http.Response) (outcome, err error) {
	limit := p.server.options.Limits.Body
	stored, err := p.store(io.LimitReader(response.Body, limit+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = stored
	if stored.Size() > limit {
		return nil, errors.Join(bugzilla.Unclear(nil), stored.Close())
	}
	outcome = bugzilla.Outcome(p.script, response.StatusCode, response.Header, stored)
	_, err = stored.Seek(0, io.SeekStart)
	return outcome, err
}

// send sends the request to its target. A read whose bearer token was refused as an API key is sent again without it: the token may
// be that of a gateway.
func (p *passing) send(r *http.Request) (*http.Response, error) {
	if p.target.MaxBody != nil && r.ContentLength > 0 {
		if limit := p.target.MaxBody(r.Context()); limit > 0 && r.ContentLength > limit {
			return nil, mapping.NewError(mapping.CodeTooLarge, mapping.ReasonTooLarge, "The tracker takes request bodies of up to %d bytes.", limit)
		}
	}
	response, err := p.target.Transport.RoundTrip(r)
	if err == nil && p.bearerAsKey && r.Method == http.MethodGet && refusesKey(response) {
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.URL.RawQuery = p.r.URL.RawQuery
		response, err = p.target.Transport.RoundTrip(r)
	}
	return response, err
}

// refusesKey reports whether a response says that the API key is not valid. The response stays as it was.
func refusesKey(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest {
		return false
	}
	head, _ := io.ReadAll(io.LimitReader(response.Body, maxKeyRefusal))
	// After an error the body gives the same error again, to the copy for the client.
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
	members, _ := mapping.ParseMembers(head) // empty if it is not an object
	code, _ := mapping.Int(members.Get("code"))
	return code == mapping.CodeBadKey
}

// modifyResponse changes what would lead the client past Portico: redirects to the tracker's own name, and its cookies.
func (p *passing) modifyResponse(response *http.Response) error {
	header := response.Header
	response.Body = passingBody{response.Body, p}
	header.Del(headerRequestID)      // Portico has set its own
	p.Header()["Content-Type"] = nil // net/http would guess one if the tracker gives none
	p.forbidSharing(header)
	scheme, host := p.origin()
	if location := header.Get("Location"); location != "" {
		header.Set("Location", p.target.clientAddress(location, p.prefix, scheme, host))
	}
	for i, line := range header["Set-Cookie"] {
		header["Set-Cookie"][i] = p.target.clientCookie(line, p.prefix)
	}
	if isPreflight(p.r) && isREST(p.path) && header.Get("Access-Control-Allow-Headers") != "" {
		header.Set("Access-Control-Allow-Headers", preflightHeaders)
	}
	return nil
}

// passingBody is the body of a response, and notes why it breaks off. The copy for the client ends with a panic then.
type passingBody struct {
	io.ReadCloser
	passing *passing
}

// Read implements io.Reader.
func (b passingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, context.Canceled) {
		b.passing.record.Reason, b.passing.cause = mapping.ReasonBadResponse, err
	}
	return n, err
}

// failure is the error that the client sees of a request that could not be passed on, or got no response.
func (p *passing) failure(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*mapping.Error](err); ok {
		return known
	}
	if ended := ctx.Err(); ended != nil {
		if errors.Is(err, ended) { // and says more
			return err
		}
		return ended
	}
	return bugzilla.Failure(err, p.mayWrite)
}
