package tracker

import (
	"io"
	"net/http"
	"strings"
)

// procedures are the remote procedure calls, by name; JSON-RPC and XML-RPC share them with REST.
func procedures() map[string]*operation {
	return map[string]*operation{
		"Bugzilla.version": &opVersion, "Bugzilla.extensions": &opExtensions, "Bugzilla.time": &opTime, "Bugzilla.parameters": &opParameters,
		"User.login": &opLogin, "User.logout": &opLogout, "User.valid_login": &opValidLogin, "User.get": &opUsers,
		"Product.get": &opProducts, "Product.get_accessible_products": &opProductIDs, "Product.get_selectable_products": &opProductIDs,
		"FlagType.get": &opFlagTypeGet, "FlagType.create": &opFlagTypeCreate, "FlagType.update": &opFlagTypeUpdate,
		"Bug.create": &opBugCreate, "Bug.get": &opBugGet, "Bug.search": &opBugSearch, "Bug.update": &opBugUpdate, "Bug.history": &opHistory, "Bug.fields": &opFields,
		"Bug.comments": &opComments, "Bug.add_comment": &opCommentCreate,
		"Bug.attachments": &opAttachmentList, "Bug.add_attachment": &opAttachmentCreate, "Bug.update_attachment": &opAttachmentUpdate,
	}
}

// codeNoProcedure is the code for a procedure that is not there.
const codeNoProcedure = 32601

// procedureCall is one remote procedure call as read from a request.
type procedureCall struct {
	method string
	params object
	id     any
	err    error
}

// planProcedure makes a plan of a call; write turns its outcome into an answer.
func (s *Server) planProcedure(r *http.Request, p procedureCall, write func(procedureCall, outcome) *reply) plan {
	op := procedures()[p.method]
	if op == nil || s.harmony() && strings.HasPrefix(p.method, "FlagType.") {
		return plan{op: "unknown", run: func() *reply {
			err := p.err
			if err == nil {
				err = fail(codeNoProcedure, "there is no procedure '%s'", p.method)
			}
			return write(p, outcome{err: err, anonymous: true})
		}}
	}
	return plan{op: op.name, run: func() *reply {
		if p.params == nil {
			p.params = object{}
		}
		fixCredentials(p.params)
		if s.mojolicious() {
			s.headerCredentials(r.Header, p.params)
		}
		return write(p, s.perform(r, op, p.params))
	}}
}

// planJSONRPC reads a JSON-RPC call. Only POST is taken.
func (s *Server) planJSONRPC(r *http.Request) plan {
	return s.planProcedure(r, readJSONRPC(r), s.jsonRPCReply)
}

func readJSONRPC(r *http.Request) procedureCall {
	if r.Method != http.MethodPost {
		return procedureCall{err: fail(codeUser, "JSON-RPC calls are made with POST")}
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || len(r.TransferEncoding) > 0 {
		return procedureCall{err: fail(codeUser, "the call cannot be read")}
	}
	v, err := decodeJSON(readable(string(raw)))
	o, ok := v.(object)
	if err != nil || !ok {
		return procedureCall{err: fail(codeUser, "the call is no JSON object")}
	}
	p := procedureCall{method: text(o["method"]), id: o["id"]}
	switch params := o["params"].(type) {
	case object:
		p.params = params
	case []any:
		if len(params) > 0 {
			p.params, _ = params[0].(object)
		}
	}
	return p
}

func (s *Server) jsonRPCReply(p procedureCall, o outcome) *reply {
	result := object{"id": answerable(p.id), "error": nil, "result": o.result}
	if f := asFailure(o.err); f != nil {
		result["result"], result["error"] = nil, object{"code": f.code, "message": f.message}
	}
	a := newReply(http.StatusOK)
	s.commonHeaders(a, o)
	a.header.Set("Content-Type", "application/json; charset=UTF-8")
	a.body = appendJSON(nil, result)
	return a
}

// answerable turns a value of a request into one of an answer.
func answerable(v any) any {
	if n, ok := v.(int64); ok {
		return int(n)
	}
	return v
}
