package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

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
		rc.varyNotModified(document)
		rc.WriteHeader(http.StatusNotModified)
		return nil
	}
	if err := rc.reshape(document); err != nil {
		return err
	}
	return rc.write(rc.record.Operation.SuccessStatus(), document)
}

// reshape gives a document the form that the configuration and the representation ask for.
func (rc *requestContext) reshape(document *mapping.Document) error {
	interfaceForm := rc.server.options.Responses == ResponsesInterface
	if !interfaceForm && !rc.form.page {
		return nil
	}
	text, err := document.Load(jsonblob.SplitOptions{Limits: jsonblob.AnswerLimits(0), Dir: rc.server.options.BlobDir})
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

func indented(text jsontext.Value) jsontext.Value {
	pretty := text.Clone()
	if err := pretty.Indent(jsontext.WithIndent("   ")); err != nil {
		return text
	}
	return pretty
}

// fail writes an error. It is the only place where a client gets one.
func (rc *requestContext) fail(err error) {
	failed := asError(err, rc.sent)
	rc.record.Reason, rc.cause = failed.Reason, failed.Err
	header := rc.Header()
	for _, name := range []string{"Etag", "Set-Cookie", "Age", "Cache-Status"} {
		header.Del(name)
	}
	setCommonHeaders(header)
	setErrorHeaders(header, failed)
	if failed.FromTracker() {
		rc.setCacheHeaders()
	}
	text := errorBody(failed, rc.server.options.DocumentationURL)
	if rc.form.page {
		text = indented(text)
	}
	// A client that cannot be reached any more needs no second error.
	_ = rc.write(failed.Status, mapping.NewDocument(text))
}

// errorBody renders an error compactly, error first: one client looks at the first bytes only (docs/reference/clients.md duty 15).
// A tracker's error without a code stays without one.
func errorBody(failed *mapping.Error, documentation string) []byte {
	var members mapping.Members
	members.Set("error", jsontext.Value("true"))
	if failed.Code != 0 {
		members.Set("code", jsontext.Value(strconv.Itoa(failed.Code)))
	}
	members.SetText("message", failed.Message)
	members.SetText("documentation", cmp.Or(failed.Documentation, documentation))
	return append(members, failed.Extra...).AppendJSON(nil)
}

const (
	pageHead = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"UTF-8\"><title>Response of the REST interface</title></head>\n<body><pre>"
	pageFoot = "</pre></body></html>\n"
)

// write sends a document in the representation that was agreed on.
func (rc *requestContext) write(status int, document *mapping.Document) error {
	var before, after string
	rc.set("Content-Type", rc.form.contentType)
	switch {
	case rc.form.page && len(document.Blobs()) > 0:
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
	if compressor := rc.compressor(document); compressor != nil {
		defer rc.server.gzips.put(compressor)
		rc.WriteHeader(status)
		if err := writeAround(compressor, compressor, before, document, after); err != nil {
			return err // without the end of the compressed text, so that the client sees that it is not whole
		}
		return compressor.Close()
	}
	if size := document.Len(); size >= 0 {
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

// htmlEscaper writes plain text as text inside HTML.
type htmlEscaper struct{ io.Writer }

// Write implements io.Writer. The count is of the plain text.
func (e htmlEscaper) Write(p []byte) (int, error) {
	if _, err := htmlEntities.WriteString(e.Writer, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

var htmlEntities = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "'", "&#39;", `"`, "&quot;")

const (
	// maxUnsent is about how much of a response may wait inside the system for a client to take it.
	maxUnsent = 64 << 10
	// maxPiece is how much of a response is written at a time.
	maxPiece = 32 << 10
	// minBodyRate is how many bytes in a second a client must send on average, beyond one pause. It is that of Debian's Apache.
	minBodyRate = 500
)

// Patient bounds the pauses of another handler's clients as a Server bounds those of its own.
func Patient(next http.Handler, pause ClientPause) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := newRecorder(w, pause.Taking)
		r = watched.watchBody(r, pause.Sending)
		defer watched.endBody()
		next.ServeHTTP(&watched, r)
	})
}

// recorder counts what is sent, and bounds how long a client takes nothing.
type recorder struct {
	http.ResponseWriter
	control http.ResponseController
	pause   time.Duration
	// body is what the client sends, nil where that is nothing.
	body *pausedBody
	// final says that the client speaks HTTP/1.0, which has no interim responses: it would take the first for the response.
	final bool
	// broken says that the response breaks off, and that the client shall see it.
	broken bool
	status int
	bytes  int64
	// extended is when the client last got another pause.
	extended time.Time
}

func newRecorder(w http.ResponseWriter, pause time.Duration) recorder {
	return recorder{ResponseWriter: w, control: *http.NewResponseController(w), pause: pause}
}

// watchBody bounds the pauses in the body of a request. It returns a copy of a request with a body, since net/http looks at the body
// of its own.
func (w *recorder) watchBody(r *http.Request, pause time.Duration) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	w.body = &pausedBody{ReadCloser: r.Body, control: &w.control, pause: pause, waits: r.Header.Get("Expect") != ""}
	r = r.WithContext(r.Context())
	r.Body = w.body
	return r
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if status < http.StatusOK {
		if w.final {
			return
		}
	} else {
		w.begin(status)
	}
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
		if done += n; err != nil || done == len(p) {
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

// reset resets the connection of a response that broke off, so that a client that speaks HTTP/1.0 can tell: it takes the end of
// the connection for the end of a response without a length.
func (w *recorder) reset() {
	if !w.final || w.status == 0 || w.Header().Get("Content-Length") != "" {
		return
	}
	connection, _, err := w.control.Hijack()
	if err != nil {
		return // then net/http closes it
	}
	if socket := socketOf(connection); socket != nil {
		_ = socket.SetLinger(0)
		_ = socket.Close() // before TLS sends its alert
	}
	_ = connection.Close()
}

// socketOf returns the socket below a connection, or nil.
func socketOf(c net.Conn) *net.TCPConn {
	for {
		if socket, ok := c.(*net.TCPConn); ok {
			return socket
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapper.NetConn()
	}
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pausedBody bounds the time that a client takes to send a body: each pause, and the whole by minBodyRate.
type pausedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	// waits says that the client sends nothing before it is told to go on, which net/http does at the first read.
	waits bool
	begun atomic.Bool
	// ended says that nothing is left to read: the body is here, broke off or did not come in time.
	ended atomic.Bool
	// received is the number of bytes that came, and waited the time that reading them took.
	received int64
	waited   time.Duration
}

// Read implements io.Reader. Between reads there is no deadline: net/http would take it for the client hanging up.
func (b *pausedBody) Read(p []byte) (int, error) {
	start := time.Now()
	due := b.pause + time.Duration(b.received/minBodyRate)*time.Second - b.waited
	_ = b.control.SetReadDeadline(start.Add(min(b.pause, due)))
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	b.waited += time.Since(start)
	if err != nil {
		b.ended.Store(true)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// drain reads on, up to a limit, after a response that did not need the whole body, as refusals do: many clients read a response
// only when they have sent everything, and would otherwise see a broken connection instead of it.
func (b *pausedBody) drain(limit int64) {
	if b.waits && !b.begun.Load() || b.ended.Load() || b.control.Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b, limit) // the response is sent, and no error changes it
}
