package proxy

import (
	"cmp"
	"compress/gzip"
	"io"
	"math"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// Headers of Portico's own.
const (
	headerRequestID = "X-Request-Id"
	// headerReason names why Portico itself responded with an error, so that its errors can be told from the tracker's.
	headerReason = "Portico-Error"
)

const (
	// allowedHeaders are the request headers that a browser may send from elsewhere, as a real tracker lists them.
	allowedHeaders = "origin, content-type, accept, x-requested-with"
	// preflightHeaders are those too that carry credentials (docs/reference/clients.md duty 19). Browsers look at the list only in
	// the response to a preflight, so everywhere else it stays the tracker's.
	preflightHeaders = allowedHeaders +
		", x-bugzilla-api-key, x-bugzilla-token, x-bugzilla-login, x-bugzilla-password, authorization"
)

// isPreflight reports whether a browser asks what it may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// commonHeaders are what every response of a tracker carries (tracker-behaviour.md section 1, Representation). The values are shared by
// all responses, so that none of them may be written to.
var commonHeaders = [...]struct {
	name   string
	values []string
}{
	{"Access-Control-Allow-Origin", []string{"*"}},
	{"Access-Control-Allow-Headers", []string{allowedHeaders}},
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"X-Frame-Options", []string{"SAMEORIGIN"}},
	{"X-Xss-Protection", []string{"1; mode=block"}},
}

func setCommonHeaders(header http.Header) {
	for _, each := range commonHeaders {
		header[each.name] = each.values
	}
}

// setErrorHeaders names the reason of Portico's own errors, when to come back, and how to log in: without its challenge no client
// responds to a web server that asks for a login.
func setErrorHeaders(header http.Header, failed *mapping.Error) {
	if failed.Reason != "" {
		reason := string(failed.Reason)
		if failed.Unknown {
			reason += "; outcome=unknown"
		}
		header.Set(headerReason, reason)
	}
	if failed.RetryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(failed.RetryAfter+time.Second-1))
	}
	for _, challenge := range failed.Challenge {
		header.Add("Www-Authenticate", challenge)
	}
}

// setCacheHeaders says how the cache came by a response (RFC 9211, RFC 9111 section 5.1).
func (rc *requestContext) setCacheHeaders() {
	info := rc.record.Cache
	if info == nil {
		return
	}
	parts := append(make([]string, 0, 6), "Portico")
	if info.Hit {
		parts = append(parts, "hit")
		rc.set("Age", wholeSeconds(info.Age))
	} else {
		parts = append(parts, "fwd="+cmp.Or(info.Forward, "miss"))
	}
	if info.Stored {
		parts = append(parts, "stored")
	}
	if info.Collapsed {
		parts = append(parts, "collapsed")
	}
	if info.TTL != 0 {
		parts = append(parts, "ttl="+wholeSeconds(info.TTL))
	}
	if info.Detail != "" {
		parts = append(parts, "detail="+info.Detail)
	}
	rc.set("Cache-Status", strings.Join(parts, "; "))
}

func wholeSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// wantsFresh reports whether a client asks for a response that is not from a cache (RFC 9111, sections 5.2.1.4 and 5.4).
func wantsFresh(header http.Header) bool {
	if header["Cache-Control"] == nil && header["Pragma"] == nil {
		return false
	}
	asked := strings.Join(slices.Concat(header["Cache-Control"], header["Pragma"]), ",")
	for directive := range strings.SplitSeq(strings.ToLower(asked), ",") {
		switch strings.TrimSpace(directive) {
		case "no-cache", "no-store", "max-age=0":
			return true
		}
	}
	return false
}

// matches reports whether If-None-Match names a tag: quoted, bare, weak, in a list, or as a star (RFC 9110, section 13.1.2).
func matches(header http.Header, etag string) bool {
	bare := strings.Trim(etag, `"`)
	if bare == "" || header["If-None-Match"] == nil {
		return false
	}
	for item := range strings.SplitSeq(strings.Join(header["If-None-Match"], ","), ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == "*" || strings.Trim(item, `"`) == bare {
			return true
		}
	}
	return false
}

// representation is the form in which a response is written.
type representation struct {
	contentType string
	// page wraps the JSON in HTML for people.
	page bool
	// callback is the name of a JSONP function.
	callback string
}

const typeJSON = "application/json; charset=UTF-8"

// offered are the exact types that a tracker negotiates, the preferred first (tracker-behaviour.md section 1, Representation).
var offered = []string{"application/json", "application/javascript", "text/javascript", "text/html"}

// How a tracker finds the name and the weight in an item of an Accept header.
var (
	acceptName   = regexp.MustCompile(`\S+/[^;]+`)
	acceptWeight = regexp.MustCompile(`q=(\d\.\d+|\d+)`)
)

// negotiate picks the representation by Accept alone. Whatever is not one of the offered types, wildcards too, counts for
// nothing, and a response is never refused. Each item without a weight, whatever its type, weighs a little less than the one before.
func negotiate(header http.Header) representation {
	accept := header["Accept"]
	if len(accept) == 0 || len(accept) == 1 && (accept[0] == "*/*" || accept[0] == offered[0]) {
		return representation{contentType: typeJSON}
	}
	best, highest, weight := offered[0], math.Inf(-1), 1.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name := acceptName.FindString(part)
		if name == "" {
			continue
		}
		q := weight
		if given := acceptWeight.FindStringSubmatch(part); given != nil {
			if q, _ = strconv.ParseFloat(given[1], 64); q == 0 {
				continue // what is refused is not sent
			}
		} else {
			weight -= 0.001
		}
		if q > highest && slices.Contains(offered, name) {
			best, highest = name, q
		}
	}
	return representation{contentType: best + "; charset=UTF-8", page: best == "text/html"}
}

// withCallback turns a representation into JSONP; without a name it does nothing. It beats Accept (recorded as
// proto.jsonp.html). Two names, and one that could be more than a name, are refused.
func (form representation) withCallback(names ...string) (representation, error) {
	name := cmp.Or(names...)
	switch {
	case len(names) > 1 || strings.Trim(name, alphanumerics+"_.[]") != "":
		return form, mapping.Refuse(mapping.CodeCallback, "The callback must be the name of a JavaScript function.")
	case name == "":
		return form, nil
	}
	return representation{contentType: "text/javascript; charset=UTF-8", callback: name}, nil
}

// plain reports whether a response is nothing but the JSON text.
func (form representation) plain() bool { return !form.page && form.callback == "" }

// mediaType returns the type of a body without parameters, empty where the header has no type, and the parameters.
func mediaType(header http.Header) (name string, attributes map[string]string) {
	given := header.Get("Content-Type")
	name, _, _ = strings.Cut(strings.ToLower(given), ";")
	_, attributes, _ = mime.ParseMediaType(given) // a mistake in them does not change the type
	return strings.TrimSpace(name), attributes
}

const (
	// minCompressed is the size in bytes from which a response is compressed. Below it the time to compress is worth more than the bytes.
	minCompressed = 16 << 10
	// maxCompressors is how many responses are compressed at a time. Each takes about a megabyte while it is sent, however large the
	// response is; further clients get theirs uncompressed.
	maxCompressors = 16
)

// compressors lends gzip writers, at most maxCompressors at a time.
type compressors chan *gzip.Writer

func newCompressors() compressors {
	c := make(compressors, maxCompressors)
	for range maxCompressors {
		c <- nil
	}
	return c
}

// get returns a writer that compresses to w, or nil when all are in use.
func (c compressors) get(w io.Writer) *gzip.Writer {
	select {
	case compressor := <-c:
		if compressor == nil {
			compressor, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // fails for unknown levels only
		}
		compressor.Reset(w)
		return compressor
	default:
		return nil
	}
}

func (c compressors) put(compressor *gzip.Writer) {
	compressor.Reset(io.Discard)
	c <- compressor
}

// compressible reports whether a document is sent compressed to clients that accept it.
func compressible(document *mapping.Document) bool {
	size := document.Len()
	return size < 0 || size >= minCompressed
}

// acceptsGzip reports whether a client names gzip without refusing it by a weight of 0 (RFC 9110, section 12.5.3).
func acceptsGzip(header http.Header) bool {
	for item := range strings.SplitSeq(strings.ToLower(strings.Join(header["Accept-Encoding"], ",")), ",") {
		coding, weight, weighted := strings.Cut(strings.ReplaceAll(item, " ", ""), ";q=")
		if coding == "gzip" || coding == "x-gzip" {
			return !weighted || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}

// compressor prepares the header of a response that may be compressed, and returns what compresses it, or nil. Pages are not
// compressed.
func (rc *requestContext) compressor(document *mapping.Document) *gzip.Writer {
	if !compressible(document) || rc.form.page {
		return nil
	}
	rc.set("Vary", "Accept-Encoding")
	if rc.r.Method == http.MethodHead || !acceptsGzip(rc.r.Header) {
		return nil
	}
	compressor := rc.server.gzips.get(rc)
	if compressor != nil {
		rc.set("Content-Encoding", "gzip")
		rc.weakenTag()
	}
	return compressor
}

// weakenTag makes the tag weak: the compressed form of a response has other bytes and the same meaning (RFC 9110, section 8.8.1).
func (rc *requestContext) weakenTag() {
	if tag := rc.Header().Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		rc.set("Etag", `W/"`+strings.Trim(tag, `"`)+`"`)
	}
}

// tagsForTracker gives If-None-Match for a tracker. A stock tracker does not know weak tags, so the mark is removed where the tag can
// be one that came with a compressed response; If-None-Match compares weakly anyway (RFC 9110, section 13.1.2).
func tagsForTracker(header http.Header) string {
	tags := header.Get("If-None-Match")
	if strings.Contains(tags, `W/"`) && acceptsGzip(header) {
		return strings.ReplaceAll(tags, `W/"`, `"`)
	}
	return tags
}

// varyNotModified prepares the header of a response with status 304 as that of the whole one: a client that shows a weak tag got it
// with a compressed response. Of a tracker's 304 the size is not known.
func (rc *requestContext) varyNotModified(document *mapping.Document) {
	accepts := acceptsGzip(rc.r.Header)
	if document.NotModified && !accepts || !document.NotModified && !compressible(document) {
		return
	}
	rc.set("Vary", "Accept-Encoding")
	if accepts && strings.Contains(strings.Join(rc.r.Header["If-None-Match"], ","), "W/") {
		rc.weakenTag()
	}
}

// setCookies passes on the cookies of a reply. Only the reply says which of several trackers it is from.
func (rc *requestContext) setCookies(from *mapping.Document) {
	for _, line := range from.Cookies {
		if from.Tracker != nil {
			_, host := rc.origin()
			target := Target{Base: from.Tracker, Names: rc.server.options.Passthrough.Names}
			line = target.clientCookie(line, rc.prefix, host)
		}
		rc.Header().Add("Set-Cookie", line)
	}
}
