package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream/bugzilla"
)

// Headers of Portico's own.
const (
	headerRequestID = "X-Request-Id"
	// headerReason names why Portico itself responded with an error, so that its errors can be told from the tracker's.
	headerReason = "Portico-Error"
)

// representation is the form in which a response is written.
type representation struct {
	contentType string
	// page wraps the JSON in HTML for people.
	page bool
	// callback is the name of a JSONP function.
	callback string
	// rpc is a call of an older interface, which gets a response in its form.
	rpc *bugzilla.RPCOperation
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
	for _, part := range items(accept) {
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
// proto.jsonp.html). Blanks around a name do not count. Two names, and one that could be more than a name, are refused.
func (form representation) withCallback(names ...string) (representation, error) {
	name := strings.TrimSpace(cmp.Or(names...))
	switch {
	case len(names) > 1 || strings.Trim(name, alphanumerics+"_.[]") != "":
		return form, mapping.Refuse(mapping.CodeCallback, "The callback must be the name of a JavaScript function.")
	case name == "":
		return form, nil
	}
	return representation{contentType: "text/javascript; charset=UTF-8", callback: name}, nil
}

// plain reports whether a response is nothing but the JSON text.
func (form representation) plain() bool { return !form.page && form.callback == "" && form.rpc == nil }

// recorder counts what is sent, and bounds how long a client takes nothing.
type recorder struct {
	http.ResponseWriter
	control http.ResponseController
	pause   time.Duration
	// body is what the client sends, nil where that is nothing.
	body *pausedBody
	// broken says that the response breaks off.
	broken bool
	status int
	bytes  int64
	// extended is when the client last got another pause.
	extended time.Time
}

func newRecorder(w http.ResponseWriter, pause time.Duration) recorder {
	return recorder{ResponseWriter: w, control: *http.NewResponseController(w), pause: pause}
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	w.begin(status)
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) begin(status int) {
	if w.status == 0 {
		w.status = status
		w.endBody()
	}
}

// Write implements http.ResponseWriter. A long text goes in pieces, so that a client that takes them slowly gets the pause for
// each.
func (w *recorder) Write(p []byte) (done int, err error) {
	w.begin(http.StatusOK)
	for {
		w.extend()
		n, err := w.ResponseWriter.Write(p[done:min(done+maxPiece, len(p))])
		w.bytes += int64(n)
		done += n
		if err != nil || done == len(p) {
			return done, err
		}
	}
}

// extend gives the client another pause. Moving a deadline costs more than reading the clock, so the last pause stays where it is
// hardly over. A writer without deadlines, as in a test, has no slow clients.
func (w *recorder) extend() {
	if now := time.Now(); now.Sub(w.extended) > w.pause/64 {
		w.extended = now
		_ = w.control.SetWriteDeadline(now.Add(w.pause))
	}
}

// endBody is called where nothing reads the body any more. net/http reads what is left of it before it sends the response, whose
// own pause begins after that.
func (w *recorder) endBody() {
	if w.body != nil && !w.body.ended.Load() {
		w.extended = time.Now().Add(w.body.pause)
		_ = w.control.SetReadDeadline(w.extended)
		_ = w.control.SetWriteDeadline(w.extended.Add(w.pause))
	}
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// items are those of a header that is a list, in one line or in several. Most requests have none, and take no memory for it.
func items(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	return strings.Split(strings.Join(lines, ","), ",")
}

// wantsFresh reports whether a client asks for a response that is not from a cache (RFC 9111, sections 5.2.1.4 and 5.4).
func wantsFresh(header http.Header) bool {
	for _, directive := range items(slices.Concat(header["Cache-Control"], header["Pragma"])) {
		switch strings.ToLower(strings.TrimSpace(directive)) {
		case "no-cache", "no-store", "max-age=0":
			return true
		}
	}
	return false
}

// reply responds with the document or the error of a call.
func (rc *requestContext) reply(document *mapping.Document, err error) {
	setCommonHeaders(rc.Header())
	rc.forbidSharing(rc.Header())
	if rc.liftDeadline != nil {
		rc.liftDeadline()
	}
	if err == nil {
		rc.markProven()
		op, held := rc.record.Operation, document.Held()
		if held > maxUnsent && (op == mapping.OpBugAttachments || op == mapping.OpAttachment) { // of flag types the cache has one for all
			err = rc.replyShare.take(held) // until the client has taken it
		}
		if err == nil {
			err = rc.succeed(document)
		}
		err = errors.Join(err, document.Close())
	}
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

// forbidSharing keeps caches before Portico from showing to others what was read with a credential in a header that they do not know. They know
// Authorization and cookies.
func (rc *requestContext) forbidSharing(header http.Header) {
	asked, name := rc.r.Header, "Cache-Control"
	if header[name] == nil && (asked["X-Bugzilla-Api-Key"] != nil || asked["X-Bugzilla-Token"] != nil || asked["X-Bugzilla-Login"] != nil) {
		header[name] = []string{"private"}
	}
}

// succeed writes the reply of an operation.
func (rc *requestContext) succeed(document *mapping.Document) error {
	rc.setCacheHeaders()
	rc.setCookies(document)
	tag := document.ETag
	if !rc.form.plain() {
		tag = ""
	}
	if tag != "" {
		rc.set("Etag", tag)
	}
	// The tag of a flag type read is Portico's own, so Portico compares it.
	if document.NotModified || rc.record.Operation == mapping.OpFlagTypes && matches(rc.r.Header, tag) {
		if acceptsGzip(rc.r.Header) { // the header is that of the whole response; a client that shows a weak tag got it with a compressed one
			rc.set("Vary", "Accept-Encoding")
			if strings.Contains(strings.Join(rc.r.Header["If-None-Match"], ","), "W/") {
				rc.weakenTag()
			}
		}
		rc.WriteHeader(http.StatusNotModified)
		return nil
	}
	if rc.form.rpc != nil {
		reply, err := rc.form.rpc.Reply(document, rc.replyOptions())
		if err != nil {
			return err
		}
		return rc.write(http.StatusOK, reply)
	}
	if err := rc.reshape(document); err != nil {
		return err
	}
	return rc.write(rc.record.Operation.SuccessStatus(), document)
}

// setCacheHeaders says how the cache came by a response (RFC 9211, RFC 9111 section 5.1).
func (rc *requestContext) setCacheHeaders() {
	info := rc.record.Cache
	if info == nil {
		return
	}
	text, ttl, detail := "Portico; hit", "", "" // short ones are joined with one allocation
	if info.Hit {
		rc.set("Age", wholeSeconds(info.Age))
	} else {
		text = "Portico; fwd=" + cmp.Or(info.Forward, "miss")
	}
	if info.Stored {
		text += "; stored"
	}
	if info.Collapsed {
		text += "; collapsed"
	}
	if info.TTL != 0 {
		ttl = "; ttl=" + wholeSeconds(info.TTL)
	}
	if info.Detail != "" {
		detail = "; detail=" + info.Detail
	}
	rc.set("Cache-Status", text+ttl+detail)
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// matches reports whether If-None-Match names a tag: quoted, bare, weak, in a list, or as a star (RFC 9110, section 13.1.2).
func matches(header http.Header, etag string) bool {
	bare := strings.Trim(etag, `"`)
	if bare == "" {
		return false
	}
	for _, item := range items(header["If-None-Match"]) {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == "*" || strings.Trim(item, `"`) == bare {
			return true
		}
	}
	return false
}

// setCookies passes on the cookies of a reply. Only the reply says which of several trackers it is from.
func (rc *requestContext) setCookies(from *mapping.Document) {
	for _, line := range from.Cookies {
		if from.Tracker != nil {
			target := Target{Base: from.Tracker}
			line = target.clientCookie(line, rc.prefix)
		}
		rc.Header().Add("Set-Cookie", line)
	}
}

// replyOptions are how a reply is read. What stays in memory counts, unless a write was carried out, which must not be refused then.
func (rc *requestContext) replyOptions() jsonblob.SplitOptions {
	options := jsonblob.SplitOptions{Limits: jsonblob.AnswerLimits(0), Dir: rc.server.options.BlobDir}
	if !rc.record.Operation.IsWrite() {
		options.Hold = rc.replyShare.take
	}
	return options
}

// reshape gives a document the form that the configuration and the representation ask for.
func (rc *requestContext) reshape(document *mapping.Document) error {
	interfaceForm := rc.server.options.Responses == ResponsesInterface
	if !interfaceForm && !rc.form.page {
		return nil
	}
	text, err := document.Load(rc.replyOptions())
	if err != nil {
		return err
	}
	if interfaceForm {
		text = mapping.InterfaceForm(rc.record.Operation, text)
	}
	if rc.form.page {
		text = indented(text)
	}
	return document.Replace(text)
}

// write sends a document in the representation that was agreed on.
func (rc *requestContext) write(status int, document *mapping.Document) error {
	var before, after string
	rc.set("Content-Type", rc.form.contentType)
	switch {
	case rc.form.page && (len(document.Blobs()) > 0 || document.Len() >= minCompressed): // which a slow client would keep in memory several times over
		rc.WriteHeader(status)
		return writeAround(rc, htmlEscaper{rc}, pageHead, document, pageFoot)
	case rc.form.page:
		// What is in memory gets a length, so that a client that has sent a part of its body only sees where a refusal ends.
		var page bytes.Buffer
		_ = writeAround(&page, htmlEscaper{&page}, pageHead, document, pageFoot) // memory to memory
		document = mapping.NewDocument(page.Bytes())
	case rc.form.callback != "":
		before, after = "/**/"+rc.form.callback+"(", ")"
	}
	size := document.Len()
	if compressor := rc.compressor(size); compressor != nil {
		defer rc.server.gzips.put(compressor)
		rc.WriteHeader(status)
		if err := writeAround(compressor, compressor, before, document, after); err != nil {
			return err // without the end of the compressed text, so that the client sees that it is not whole
		}
		return compressor.Close()
	}
	if size >= 0 {
		rc.set("Content-Length", strconv.FormatInt(size+int64(len(before)+len(after)), 10))
	}
	rc.WriteHeader(status)
	if rc.r.Method == http.MethodHead {
		return nil
	}
	return writeAround(rc, rc, before, document, after)
}

// writeAround writes a document between two pieces of text. middle is w, or what encodes the document for it.
func writeAround(w, middle io.Writer, before string, document io.WriterTo, after string) error {
	if before != "" {
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
	}
	if _, err := document.WriteTo(middle); err != nil || after == "" {
		return err
	}
	_, err := io.WriteString(w, after)
	return err
}

// minCompressed is the size in bytes from which a response is compressed. Below it the time to compress is worth more than the bytes.
const minCompressed = 16 << 10

const (
	// allowedHeaders are the request headers that a browser may send from elsewhere, as a real tracker lists them.
	allowedHeaders = "origin, content-type, accept, x-requested-with"
	// preflightHeaders are those too that carry credentials (docs/reference/clients.md duty 19). Browsers look at the list only in
	// the response to a preflight, so everywhere else it stays the tracker's.
	preflightHeaders = allowedHeaders +
		", x-bugzilla-api-key, x-bugzilla-token, x-bugzilla-login, x-bugzilla-password, authorization"
)

// commonHeaders are what every response of a tracker carries (tracker-behaviour.md section 1, Representation). The values are shared by
// all responses, so that none of them may be written to.
var commonHeaders = http.Header{
	"Access-Control-Allow-Origin":  {"*"},
	"Access-Control-Allow-Headers": {allowedHeaders},
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"SAMEORIGIN"},
	"X-Xss-Protection":             {"1; mode=block"},
}

func setCommonHeaders(header http.Header) { maps.Copy(header, commonHeaders) }
