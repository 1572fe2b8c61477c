package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"

	"portico/mapping"
	"portico/upstream/canary"
)

const (
	// mostHead bounds the heads of an answer together.
	mostHead = 1 << 20
	// defaultBody is how much of a body is kept, mostRead how many times as much is read for its digest. Whoever sends more
	// never ends.
	defaultBody = 64 << 20
	mostRead    = 4
)

// errEndless says that an answer was given up on.
var errEndless = errors.New("the answer is many times longer than what is compared")

// receive reads one answer, after any informational ones. Of its body at most so many bytes are kept.
func receive(conn net.Conn, r Request, most int64) (Response, error) {
	head := &io.LimitedReader{R: conn, N: mostHead}
	in := bufio.NewReader(head)
	for {
		a, err := http.ReadResponse(in, &http.Request{Method: r.Method})
		if err != nil && head.N == 0 {
			return Response{}, errEndless
		}
		if err != nil {
			return Response{}, err
		}
		if a.StatusCode < http.StatusOK {
			continue
		}
		head.N = math.MaxInt64
		out := response(a)
		err = out.keep(a.Body, OperationOf(r.Method, r.Path), most)
		conn.Close() // first: else closing the body reads on to its end
		a.Body.Close()
		return out, err
	}
}

func response(a *http.Response) Response {
	out := Response{Status: a.StatusCode, Headers: map[string]string{}}
	for name, values := range a.Header {
		out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if len(a.TransferEncoding) > 0 {
		out.Headers["transfer-encoding"] = strings.Join(a.TransferEncoding, ", ")
	}
	return out
}

// keep reads the body. One that is longer than most is read for its size and its digest only, up to mostRead times as much.
func (a *Response) keep(from io.Reader, operation mapping.Operation, most int64) error {
	var err error
	if a.Body, err = io.ReadAll(io.LimitReader(from, most+1)); err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if int64(len(a.Body)) <= most {
		return nil
	}
	digest := canary.NewDigest(operation)
	_, _ = digest.Write(a.Body) // a digest never fails
	a.Body = nil
	if _, err := io.Copy(digest, io.LimitReader(from, mostRead*most-most)); err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	long := digest.Payload()
	if a.Size, a.long = long.Size, &long; a.Size > mostRead*most {
		return errEndless
	}
	return nil
}
