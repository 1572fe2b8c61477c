package bugzilla

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Call is one HTTP request to a tracker as planned, before credentials are
// added. Planning is a pure function of dialect and request, so that it can be
// shown and compared without sending anything.
type Call struct {
	// Operation is what the call stands for.
	Operation mapping.Operation
	// Method is GET, POST or PUT.
	Method string
	// Path is escaped and begins with a slash.
	Path string
	// Query holds no credentials.
	Query url.Values
	// Body is the JSON object to send; nil means none.
	Body mapping.Members
	// Data is the payload of an attachment create, kept out of Body.
	Data *jsonblob.Blob
	// RPC is the JSON-RPC method whose one parameter Body is; empty for REST.
	RPC string
	// IfNoneMatch is sent along when it is not empty.
	IfNoneMatch string
	// long makes the same call by JSON-RPC, for when its address gets too
	// long; nil where there is no such form.
	long func() Call
	// paths are REST paths to try in turn where the web server refuses JSON-RPC.
	paths []string
}

// IsRead reports whether sending the call twice is harmless, JSON-RPC reads
// included although they are sent by POST.
func (c *Call) IsRead() bool { return !c.Operation.IsWrite() }

// payload renders the body with its exact length. The credentials are merged
// here, so that a Call can be shown without them.
func (c *Call) payload(credentials mapping.Members) (*jsonblob.Joined, error) {
	members := append(c.Body.Clone(), credentials...)
	var blobs []*jsonblob.Blob
	if c.Data != nil {
		members.Set("data", jsonblob.AppendBlob(nil, c.Data, &blobs))
	}
	text := members.AppendJSON(nil)
	if c.RPC != "" {
		text = envelope(c.RPC, text)
	}
	return jsonblob.Join(text, blobs)
}

// envelope wraps the parameters of a JSON-RPC 1.0 call, the version that 5.0
// and 5.2 speak.
func envelope(method string, params []byte) []byte {
	var call mapping.Members
	call.SetText("method", method)
	call.Set("params", append(append([]byte{'['}, params...), ']'))
	call.Set("id", []byte("1"))
	return call.AppendJSON(nil)
}

// jsonRPC is the endpoint that takes names in a body (tracker-behaviour.md section 1).
const jsonRPC = "/jsonrpc.cgi"

// plan plans a call for a dialect.
func plan(dialect mapping.Dialect, call upstream.Call) (Call, error) {
	switch call.Operation {
	case mapping.OpFlagTypes:
		return PlanFlagTypes(dialect, *call.FlagTypes)
	case mapping.OpBugAttachments, mapping.OpAttachment:
		return PlanAttachments(dialect, call.Operation, *call.Attachments)
	case mapping.OpCreateFlagType:
		return PlanCreateFlagType(dialect, *call.CreateFlagType)
	case mapping.OpUpdateFlagTypes:
		return PlanUpdateFlagTypes(dialect, *call.UpdateFlagTypes)
	case mapping.OpCreateAttachment:
		return PlanCreateAttachment(dialect, *call.CreateAttachment)
	case mapping.OpUpdateAttachments:
		return PlanUpdateAttachments(dialect, *call.UpdateAttachments)
	}
	return Call{}, fmt.Errorf("%q is not an operation", call.Operation)
}

// hasExpectedMembers reports whether a success has the members of its operation (tracker-behaviour.md sections 2 to 7). After an
// object without them the outcome of a write is unknown.
func hasExpectedMembers(operation mapping.Operation, members mapping.Members) bool {
	has := func(name string, kind jsontext.Kind) bool { return members.Get(name).Kind() == kind }
	switch operation {
	case mapping.OpCreateFlagType:
		return (mapping.Reply{Document: mapping.NewDocument(members.AppendJSON(nil))}).ID() != 0
	case mapping.OpUpdateFlagTypes:
		return has("flagtypes", '[')
	case mapping.OpBugAttachments, mapping.OpAttachment:
		// The list is that of a lookup of bugs, and comments those of one of comments.
		return has("bugs", '{') && (has("attachments", '{') || has("comments", '{')) || has("bugs", '[')
	case mapping.OpCreateAttachment:
		return has("ids", '[') || has("attachments", '{') // the map of the dialect bmo
	case mapping.OpUpdateAttachments:
		return has("attachments", '[')
	default:
		return true // flag types are checked when they are brought into their stable form
	}
}

// PlanFlagTypes plans a flag type read. Names travel in the path where it can
// carry them, the component else in the query, and both else by JSON-RPC
// (tracker-behaviour.md sections 1 and 14).
func PlanFlagTypes(dialect mapping.Dialect, request mapping.FlagTypesRequest) (Call, error) {
	call := Call{Operation: mapping.OpFlagTypes, Method: http.MethodGet, Query: url.Values{}}
	segments := []string{dialect.FlagTypeResource, request.Product}
	if request.Component != "" && fitsPath(dialect, request.Component) {
		segments = append(segments, request.Component)
	} else if request.Component != "" {
		call.Query.Set("component", request.Component)
	}
	path, err := resource(dialect, segments...)
	call.Path = path
	fits := err == nil && fitsQuery(dialect, request.Component)
	call.long = longForm(dialect, func() Call {
		var params mapping.Members
		params.SetText("product", request.Product)
		if request.Component != "" {
			params.SetText("component", request.Component)
		}
		rpc := rpcRead(mapping.OpFlagTypes, "FlagType.get", params)
		if !fits {
			rpc.paths = rawPaths(dialect, request)
		}
		return rpc
	})
	return call.orLong(fits, "The tracker cannot be asked for product %q, component %q.", request.Product, request.Component)
}

// rawPaths returns the REST paths by which some stock trackers find a product with a non-ASCII name: in UTF-8 with the mysql driver
// (5.0), and in Latin-1 with the mariadb driver (5.2), which does not decode a path (tracker-behaviour.md section 1, Encoded characters).
func rawPaths(dialect mapping.Dialect, request mapping.FlagTypesRequest) []string {
	if strings.ContainsAny(request.Product, `/%\?#`) || request.Component != "" && !fitsPath(dialect, request.Component) {
		return nil
	}
	names := []string{request.Product}
	if latin, ok := inLatin1(request.Product); ok {
		names = append(names, latin)
	}
	for i, name := range names {
		names[i] = cmp.Or(dialect.Root, restRoot) + "/" + dialect.FlagTypeResource + "/" + url.PathEscape(name)
		if request.Component != "" {
			names[i] += "/" + url.PathEscape(request.Component)
		}
	}
	return names
}

// inLatin1 encodes a text in Latin-1 if it can.
func inLatin1(text string) (encoded string, ok bool) {
	var bytes strings.Builder
	for _, r := range text {
		if r > 0xff {
			return "", false
		}
		bytes.WriteByte(byte(r))
	}
	return bytes.String(), true
}

// longForm is a call's form by JSON-RPC where the dialect has that.
func longForm(dialect mapping.Dialect, rpc func() Call) func() Call {
	if !dialect.JSONRPC {
		return nil
	}
	return rpc
}

func rpcRead(operation mapping.Operation, method string, params mapping.Members) Call {
	return Call{Operation: operation, Method: http.MethodPost, Path: jsonRPC, RPC: method, Body: params}
}

// PlanCreateFlagType plans a flag type create.
func PlanCreateFlagType(dialect mapping.Dialect, request mapping.FlagTypeCreate) (Call, error) {
	return planFlagTypeWrite(dialect, mapping.OpCreateFlagType, request.Members)
}

// PlanUpdateFlagTypes plans a flag type update. The selection goes in the body,
// where the tracker takes it in place of the path's; the path names the first
// one if it can.
func PlanUpdateFlagTypes(dialect mapping.Dialect, request mapping.FlagTypeUpdate) (Call, error) {
	return planFlagTypeWrite(dialect, mapping.OpUpdateFlagTypes, request.Members, pathSelection(dialect, request))
}

func planFlagTypeWrite(
	dialect mapping.Dialect, operation mapping.Operation, members func(mapping.Dialect) (mapping.Members, error), selection ...string,
) (Call, error) {
	if !dialect.FlagTypeWrites {
		return Call{}, mapping.NoFlagTypeWrites()
	}
	body, err := members(dialect)
	if err != nil {
		return Call{}, err
	}
	path, err := resource(dialect, append([]string{dialect.FlagTypeResource}, selection...)...)
	return Call{Operation: operation, Method: operation.Method(), Path: path, Body: body}, err
}

// pathSelection picks what stands in the path: an id if there is one, since the
// body's ids replace it, or else a name, which the body's names replace. All
// digits would be read as an id, so such a name gets a stand-in.
func pathSelection(dialect mapping.Dialect, request mapping.FlagTypeUpdate) string {
	if len(request.IDs) > 0 {
		return strconv.FormatInt(request.IDs[0], 10)
	}
	name := request.Names[0]
	if _, err := strconv.ParseUint(name, 10, 64); err == nil {
		return "names"
	}
	return orStandIn(dialect, name, "names")
}

// maxSegment bounds what a name which the body has too takes up in a path. No name of a tracker is so long,
// and the path stays far from what web servers take.
const maxSegment = 4096

// orStandIn returns what stands in the path for a name that the body has too: the name if it can.
func orStandIn(dialect mapping.Dialect, name, standIn string) string {
	if !fitsPath(dialect, name) || len(url.PathEscape(name)) > maxSegment {
		return standIn
	}
	return name
}

// PlanAttachments plans a read of the attachments of bugs, or of attachments by id.
func PlanAttachments(dialect mapping.Dialect, operation mapping.Operation, request mapping.AttachmentsRequest) (Call, error) {
	bugs, attachments, segments := request.Bugs, request.Attachments, []string{"bug"}
	if operation == mapping.OpBugAttachments {
		segments, bugs = append(segments, bugs[0], "attachment"), bugs[1:]
	} else {
		segments, attachments = append(segments, "attachment", attachments[0]), attachments[1:]
	}
	path, err := resource(dialect, segments...)
	call := Call{
		Operation: operation, Method: http.MethodGet, Path: path, Query: url.Values{"ids": bugs, "attachment_ids": attachments},
		IfNoneMatch: request.IfNoneMatch,
	}
	setList(call.Query, "include_fields", request.Include)
	setList(call.Query, "exclude_fields", request.Exclude)
	call.long = longForm(dialect, func() Call {
		var params mapping.Members
		setTexts(&params, "ids", request.Bugs)
		setTexts(&params, "attachment_ids", request.Attachments)
		setTexts(&params, "include_fields", request.Include)
		setTexts(&params, "exclude_fields", request.Exclude)
		return rpcRead(operation, "Bug.attachments", params)
	})
	return call.orLong(err == nil && allFitQuery(dialect, bugs), "The tracker cannot be asked for the bugs %q.", request.Bugs)
}

// orLong returns a call as it is if its address can carry its names, and else by JSON-RPC. The message is for a tracker
// without JSON-RPC.
func (c Call) orLong(fits bool, message string, names ...any) (Call, error) {
	switch {
	case fits:
		return c, nil
	case c.long != nil:
		return c.long(), nil
	}
	return Call{}, mapping.Inexpressible(message, names...)
}

// allFitQuery reports whether the query can carry all names; see fitsQuery.
func allFitQuery(dialect mapping.Dialect, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !fitsQuery(dialect, name) })
}

// setList joins names of fields, which hold no comma, in the shortest form that trackers read (tracker-behaviour.md section 5).
func setList(query url.Values, name string, values []string) {
	if len(values) > 0 {
		query.Set(name, strings.Join(values, ","))
	}
}

func setTexts(params *mapping.Members, name string, texts []string) {
	if len(texts) > 0 {
		list, _ := json.Marshal(texts, jsontext.AllowInvalidUTF8(true))
		params.Set(name, list)
	}
}

// PlanCreateAttachment plans an attachment create. All bugs go in the body,
// where they replace the path's.
func PlanCreateAttachment(dialect mapping.Dialect, request mapping.AttachmentCreate) (Call, error) {
	path, err := resource(dialect, "bug", orStandIn(dialect, request.Bugs[0], "ids"), "attachment")
	return Call{
		Operation: mapping.OpCreateAttachment, Method: http.MethodPost, Path: path,
		Body: request.Members(), Data: request.Data,
	}, err
}

// PlanUpdateAttachments plans an attachment update. All ids go in the body,
// where they replace the path's.
func PlanUpdateAttachments(dialect mapping.Dialect, request mapping.AttachmentUpdate) (Call, error) {
	path, err := resource(dialect, "bug", "attachment", strconv.FormatInt(request.IDs[0], 10))
	return Call{Operation: mapping.OpUpdateAttachments, Method: http.MethodPut, Path: path, Body: request.Members()}, err
}
