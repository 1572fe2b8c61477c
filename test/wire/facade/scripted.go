// Package facade replays the recorded exchanges through Portico and accounts for every answer that differs from the recorded one.
package facade

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"

	"portico/test/wire"
)

// Scripted is a tracker that gives one recorded response to whatever it is asked.
type Scripted struct {
	mu     sync.Mutex
	answer wire.Response
}

// Say sets the next response.
func (s *Scripted) Say(answer wire.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// ServeHTTP implements http.Handler.
func (s *Scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // what was cut short counts as it is
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer.Status == 0 { // recorded as a closed connection
		panic(http.ErrAbortHandler)
	}
	for name, value := range answer.Headers {
		if name != "transfer-encoding" && name != "content-length" && name != "connection" {
			w.Header()[http.CanonicalHeaderKey(name)] = []string{value}
		}
	}
	text := unframed(answer)
	if r.URL.Path == "/jsonrpc.cgi" {
		text = envelope(answer)
	}
	if r.Method != http.MethodHead && answer.Status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(text)
}

// unframed takes the callback off a recorded JSONP answer, since Portico asks
// for JSON and frames it itself; and gives pages, whose text is not recorded, one.
func unframed(answer wire.Response) []byte {
	if answer.HTML {
		return []byte("<!DOCTYPE html>\n<html><body></body></html>\n")
	}
	if !bytes.HasPrefix(answer.Body, []byte("/**/")) {
		return answer.Body
	}
	begin := bytes.IndexByte(answer.Body, '(')
	end := bytes.LastIndexByte(answer.Body, ')')
	return answer.Body[begin+1 : end]
}

// envelope gives a recorded REST answer the form of the JSON-RPC endpoint. Where
// the recording is of a page, the path could not be asked for by REST, and the
// tracker's answer to JSON-RPC is not known: it then has no flag types.
func envelope(answer wire.Response) []byte {
	body := answer.Body
	if answer.HTML || !bytes.HasPrefix(body, []byte("{")) {
		body = []byte(`{"bug":[],"attachment":[]}`)
	}
	if answer.Status >= http.StatusBadRequest && !answer.HTML {
		return []byte(`{"error":` + string(body) + `,"id":1,"result":null}`)
	}
	return []byte(`{"error":null,"id":1,"result":` + string(body) + `}`)
}
