package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// answer is the outcome of a successful operation.
type answer struct {
	*mapping.Document
	cache *mapping.CacheInfo
	// ownTag says that the document's tag is Portico's own, so that Portico compares it with the client's.
	ownTag bool
}

// succeed writes a successful answer.
func (x *exchange) succeed(status int, got answer) error {
	header := x.w.Header()
	x.record.Cache = got.cache
	setCacheHeaders(header, got.cache)
	if len(got.Cookies) > 0 {
		x.setCookies(got.Document)
	}
	if x.as.plain() && got.ETag != "" {
		set(header, "Etag", got.ETag)
	}
	if got.NotModified || got.ownTag && x.as.plain() && matches(x.r.Header, got.ETag) {
		x.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if err := x.reshape(got.Document); err != nil {
		return err
	}
	return x.write(status, got.Document)
}

// reshape gives a document the form that the configuration and the representation ask for.
func (x *exchange) reshape(document *mapping.Document) error {
	interfaceForm := x.server.options.Responses == ResponsesInterface
	if !interfaceForm && !x.as.page {
		return nil
	}
	text, err := document.Load(mapping.SplitOptions{Limits: mapping.AnswerLimits(0), Dir: x.server.options.BlobDir})
	if err != nil {
		return x.unreadable(err)
	}
	if interfaceForm {
		text = mapping.InterfaceForm(x.operation, text)
	}
	if x.as.page {
		text = indented(text)
	}
	if err := document.Replace(text); err != nil {
		return x.unreadable(err)
	}
	return nil
}

// unreadable is the error for an answer of the tracker that is not what it should be.
func (x *exchange) unreadable(err error) error {
	if _, store := errors.AsType[*mapping.BlobError](err); store {
		return internal(x.record.handed, err)
	}
	failed := failure(mapping.CodeBadGateway, mapping.ReasonBadAnswer, "The tracker's answer could not be read.", err)
	failed.Unknown = x.operation.IsWrite()
	return failed
}

func indented(text jsontext.Value) jsontext.Value {
	pretty := text.Clone()
	if err := pretty.Indent(jsontext.WithIndent("   ")); err != nil {
		return text
	}
	return pretty
}

// fail writes an error. It is the only place where a client gets one.
func (x *exchange) fail(err error) {
	failed := asError(err, x.record.handed)
	x.record.Reason, x.record.cause = failed.Reason, failed.Err
	header := x.w.Header()
	for _, name := range []string{"Etag", "Set-Cookie", "Age", "Cache-Status"} {
		header.Del(name)
	}
	setErrorHeaders(header, failed)
	if failed.FromTracker() {
		setCacheHeaders(header, x.record.Cache)
	}
	text := errorBody(failed, x.server.options.DocumentationURL)
	if x.as.page {
		text = indented(text)
	}
	// A client that cannot be reached any more needs no second error.
	_ = x.write(failed.Status, mapping.NewDocument(text))
}

// errorBody writes an error compactly, error first: one client looks at the first bytes only (clients.md, section 4, row 15).
// A tracker's error without a code stays without one.
func errorBody(failed *mapping.Error, documentation string) []byte {
	var members mapping.Members
	members.Set("error", jsontext.Value("true"))
	if failed.Code != 0 {
		members.Set("code", jsontext.Value(strconv.Itoa(failed.Code)))
	}
	members.SetText("message", failed.Message)
	members.SetText("documentation", firstOf(failed.Documentation, documentation))
	return append(members, failed.Extra...).AppendJSON(nil)
}

const (
	pageHead = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"UTF-8\"><title>Answer of the REST interface</title></head>\n<body><pre>"
	pageFoot = "</pre></body></html>\n"
)

// write sends a document in the representation that was agreed on.
func (x *exchange) write(status int, document *mapping.Document) error {
	header := x.w.Header()
	set(header, "Content-Type", x.as.contentType)
	if x.as.page {
		return x.writePage(status, document)
	}
	before, after := "", ""
	if x.as.callback != "" {
		before, after = "/**/"+x.as.callback+"(", ")"
	}
	if size := document.Len(); size >= 0 {
		set(header, "Content-Length", strconv.FormatInt(size+int64(len(before)+len(after)), 10))
	}
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return nil
	}
	return writeAround(x.w, before, document, after)
}

// wholePage is the size up to which the page of a document is made before it is sent, so that it has a length. Without one, who
// has sent a part of a body only would not see where a refusal ends until the body is given up.
const wholePage = 64 << 10

func (x *exchange) writePage(status int, document *mapping.Document) error {
	page := escapedDocument{document}
	if size := document.Len(); size < 0 || size > wholePage {
		x.w.WriteHeader(status)
		return writeAround(x.w, pageHead, page, pageFoot)
	}
	var whole bytes.Buffer
	if err := writeAround(&whole, pageHead, page, pageFoot); err != nil {
		return err
	}
	set(x.w.Header(), "Content-Length", strconv.Itoa(whole.Len()))
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return nil
	}
	_, err := x.w.Write(whole.Bytes())
	return err
}

// writeAround writes a document between two pieces of text.
func writeAround(w io.Writer, before string, document io.WriterTo, after string) error {
	if before != "" {
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
	}
	if _, err := document.WriteTo(w); err != nil {
		return err
	}
	if after == "" {
		return nil
	}
	_, err := io.WriteString(w, after)
	return err
}

// escapedDocument writes a document as text inside HTML.
type escapedDocument struct{ io.WriterTo }

// WriteTo implements io.WriterTo.
func (d escapedDocument) WriteTo(w io.Writer) (int64, error) {
	return d.WriterTo.WriteTo(htmlEscaper{w})
}

// htmlEscaper takes away the meaning that text could have in HTML.
type htmlEscaper struct{ io.Writer }

// Write implements io.Writer. The count is of the plain text.
func (e htmlEscaper) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := bytes.IndexAny(p[done:], `<>&'"`)
		if n < 0 {
			n = len(p) - done
		}
		if _, err := e.Writer.Write(p[done : done+n]); err != nil {
			return done, err
		}
		if done += n; done == len(p) {
			break
		}
		if _, err := io.WriteString(e.Writer, htmlEntities[p[done]]); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

var htmlEntities = map[byte]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '\'': "&#39;", '"': "&quot;"}
