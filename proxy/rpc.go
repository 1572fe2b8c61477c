package proxy

import (
	"io"
	"net/http"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream/bugzilla"
)

// operate carries out a call of an older interface that is one of the operations, where such calls do not pass. It returns false for what
// passes.
func (p *passing) operate(body *jsonblob.Stored) (done bool, err error) {
	carriesOut := p.settings.Operations
	if body == nil || !p.isOperation || p.r.Method != http.MethodPost || p.r.URL.RawQuery != "" || carriesOut == nil || !carriesOut() {
		return false, nil
	}
	kind, _ := mediaType(p.r.Header)
	rpc, err := bugzilla.ReadOperation(p.script, kind, body, p.splitOptions())
	if rpc != nil {
		p.reply(p.carryOutRPC(rpc))
		return true, nil
	}
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	return false, err
}

// carryOutRPC makes the call of an operation as that of REST is made, whose path it does without.
func (rc *requestContext) carryOutRPC(rpc *bugzilla.RPCOperation) (document *mapping.Document, err error) {
	rc.record.Operation, rc.blobs = rpc.Operation, rpc.Blobs
	rc.form = representation{contentType: rpc.ContentType(), rpc: rpc}
	if rc.server.lacks(rc.r.Context(), rpc.Operation) {
		return nil, mapping.NoFlagTypeWrites()
	}
	if rc.caller.Credentials, err = credentials(rc.r.Header, nil, &rpc.Params); err != nil {
		return nil, err
	}
	segment := rpc.Selected
	if !rpc.Operation.IsWrite() {
		for _, each := range rpc.Params {
			for _, text := range bugzilla.Texts(each.Value) {
				rc.query = append(rc.query, parameter{each.Name, text})
			}
		}
	} else if err := rc.needLogin(); err != nil {
		return nil, err
	} else if segment == "" && rpc.Operation != mapping.OpCreateFlagType {
		return nil, mapping.Refuse(mapping.CodeRequired, "The call needs the parameter ids.")
	}
	rc.written = rpc.Params
	return rc.complete(rc.decode(rpc.Operation, segment, rpc.Params))
}
