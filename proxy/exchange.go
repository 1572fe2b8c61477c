package proxy

import (
	"context"
	"errors"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"portico/mapping"
	"portico/upstream"
)

// exchange is one request on its way through Portico and back.
type exchange struct {
	server    *Server
	w         *recorder
	r         *http.Request
	record    *Record
	operation mapping.Operation
	as        representation
	segments  httprouter.Params
	query     parameters
	caller    upstream.Caller
	blobs     []*mapping.Blob
	share     share
	call      *callContext
	admitted  bool
	// unproved is who asks, where no tracker was seen to accept the credential yet.
	unproved *upstream.Caller
}

// exchange begins with what every answer needs, whatever becomes of the request.
func (s *Server) exchange(w *recorder, r *http.Request, name mapping.Operation) *exchange {
	record := recordOf(r.Context())
	record.Operation = name
	setCommonHeaders(w.Header())
	return &exchange{server: s, w: w, r: r, record: record, operation: name, as: negotiate(r.Header), share: share{of: s.memory}}
}

// perform carries out one of the seven operations.
func (s *Server) perform(w http.ResponseWriter, r *http.Request, segments httprouter.Params, op operation) {
	x := s.exchange(w.(*recorder), r, op.name)
	x.segments = segments
	defer x.close()
	err := x.answer(op)
	switch {
	case err == nil || x.w.declines():
	case x.w.status == 0:
		x.fail(err)
	default:
		// The answer has begun: the only way left to tell the client is to let it see the connection break.
		x.record.Reason, x.record.cause = cutReason(err), err
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) answer(op operation) error {
	if err := x.identify(); err != nil {
		return err
	}
	if err := x.admitEarly(); err != nil {
		return err
	}
	if err := x.noteIdempotencyKey(); err != nil {
		return err
	}
	got, err := op.run(x)
	if err != nil {
		return err
	}
	x.proved()
	err = x.succeed(op.name.SuccessStatus(), got)
	return errors.Join(err, got.Close())
}

// identify reads the query and who is asking. What a write says in its body comes later.
func (x *exchange) identify() error {
	x.caller = upstream.Caller{
		Address: x.record.client, UserAgent: x.r.UserAgent(), RequestID: x.record.ID,
	}
	var utf8 bool
	x.query, utf8 = parseQuery(x.r.URL.RawQuery)
	var err error
	if x.as, err = x.as.withCallback(x.query); err != nil {
		return err
	}
	if x.operation.IsWrite() {
		if !utf8 {
			return mapping.Refuse(mapping.CodeJSON, "The parameters in the address are not valid UTF-8.")
		}
		return nil
	}
	x.caller.Credentials, err = credentials(x.r.Header, x.query, nil)
	return err
}

// begin starts the call to the tracker.
func (x *exchange) begin() context.Context {
	if x.w.desk != nil {
		return x.r.Context()
	}
	limit := x.server.options.ReadTimeout
	if x.operation.IsWrite() {
		limit = x.server.options.WriteTimeout
		x.record.handed = true
	}
	x.call = newCallContext(x.r.Context(), limit)
	if fresh := x.server.options.Revalidate; fresh != nil && x.operation == mapping.OpFlagTypes && wantsFresh(x.r.Header) {
		return fresh(x.call.plain)
	}
	return x.call.plain
}

// close gives back what the exchange holds.
func (x *exchange) close() {
	x.share.end()
	if x.call != nil {
		x.call.end()
	}
	if err := mapping.CloseBlobs(x.blobs); err != nil {
		x.server.options.Logger.Warn("a payload could not be put away", "id", x.record.ID, "cause", causeText(err))
	}
}
