package proxy

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// changingCall is what is known of a request that may change flag types.
type changingCall struct {
	// script is what the tracker runs for it.
	script string
	// named tells that it surely asks for a flag type write, rather than being beyond understanding.
	named bool
	// shown tells that it shows a credential, or may do so where nobody looked.
	shown bool
}

// lookAtChange finds out about a request that may change flag types what its answer cannot say. The body stays as it is.
func (s *Server) lookAtChange(r *http.Request) error {
	on := passingOf(r)
	if !on.changesFlagTypes || s.options.Passthrough.FlagTypesChanging == nil {
		return nil
	}
	body := r.Body
	head, err := io.ReadAll(io.LimitReader(body, callLimit+1))
	if err != nil {
		return &mapping.BlobError{Op: "read", Err: err}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
	whole := len(head) <= callLimit
	on.change = changingCall{script: scriptOf(r.URL.Path)}
	on.change.named = on.change.script == scriptFlagTypes || whole && namesFlagTypeWrite(callMethods(on.change.script, head))
	on.change.shown = !whole || !s.passingCaller(r).Anonymous() || on.change.shownIn(r.Header, head)
	return nil
}

// shownIn tells whether a body shows a credential. One that cannot be read may do so.
func (c *changingCall) shownIn(header http.Header, body []byte) bool {
	switch c.script {
	case scriptJSONRPC:
		return jsonShows(body)
	case scriptXMLRPC:
		return xmlShows(body)
	default:
		return len(bodyCredentials(header, body)) > 0
	}
}

// jsonShows tells whether there is a credential among the members of a call, at any depth.
func jsonShows(body []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		within, length := decoder.StackIndex(decoder.StackDepth())
		if within == '{' && length%2 == 1 && isCredential(token.String()) {
			return true
		}
	}
}

// xmlShows tells whether there is a credential among the members of a call's structures.
func xmlShows(body []byte) bool {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	for {
		token, err := decoder.Token()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "name" {
			continue
		}
		var name string
		if decoder.DecodeElement(&name, &start) != nil || isCredential(strings.TrimSpace(name)) {
			return true
		}
	}
}

// callMethods gives the methods of a call, as far as it can be read.
func callMethods(script string, body []byte) []string {
	if script == scriptXMLRPC {
		return xmlMethods(body)
	}
	methods, err := jsonMethods(body)
	if err != nil {
		return nil
	}
	return methods
}

// ChangesByLink tells a transport that a request which passes may change flag types although its method only reads: the page
// of administrators takes links for forms. It must not be sent twice.
func ChangesByLink(r *http.Request) bool {
	return isReading(r.Method) && passingOf(r).changesFlagTypes
}

func namesFlagTypeWrite(methods []string) bool {
	return slices.Contains(methods, "FlagType.create") || slices.Contains(methods, "FlagType.update")
}

// changing carries requests. Of those that may change flag types it tells what became of them before their clients hear it.
type changing struct {
	server *Server
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Who shows no credential cannot change flag types, so such a request counts only when
// its answer says that it was carried out; otherwise anybody could empty a cache at will.
func (c changing) RoundTrip(r *http.Request) (response *http.Response, err error) {
	on, tell := passingOf(r), c.server.options.Passthrough.FlagTypesChanging
	if tell == nil || !on.changesFlagTypes {
		return c.next.RoundTrip(r)
	}
	send := func() error {
		var sent bool
		if response, sent, err = c.send(r); err != nil { //nolint:bodyclose // who asked for the round trip closes it
			return c.lost(r, err, sent)
		}
		return on.change.outcome(response)
	}
	ctx := context.WithoutCancel(r.Context())
	switch {
	case on.change.shown:
		_ = tell(ctx, send)
	case send() == nil:
		_ = tell(ctx, func() error { return nil })
	}
	return response, err
}

// send tells besides whether there was a connection to send anything on.
func (c changing) send(r *http.Request) (response *http.Response, sent bool, err error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	response, err = c.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	return response, connected.Load(), err
}

// lost says what became of a request that got no answer. One whose client hung up before there was a connection was not sent. One
// whose method only reads is known if it was not sent: for everybody else its loss would be of no consequence, but the page of
// flag types takes links for forms.
func (c changing) lost(r *http.Request, err error, sent bool) error {
	failed := *asError(c.server.passError(r, err), true)
	switch {
	case sent && isReading(r.Method):
		failed.Unknown = true
	case !sent && r.Context().Err() != nil && !failed.Unknown:
		failed.Reason = mapping.ReasonUnreachable
	}
	return &failed
}
