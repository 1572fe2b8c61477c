package bugzilla

import (
	"fmt"
	"maps"
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
		text = fmt.Appendf(nil, `{"method":"%s","params":[%s],"id":1}`, c.RPC, text) // JSON-RPC 1.0, which 5.0 and 5.2 speak
	}
	return jsonblob.Join(text, blobs)
}

// jsonRPC is the endpoint that takes names in a body (tracker-behaviour.md section 1).
const jsonRPC = "/jsonrpc.cgi"

// plan plans a call for a dialect. All bugs, attachments or flag types of a write go in its body, where they replace the path's
// (tracker-behaviour.md sections 4, 6 and 7).
func plan(dialect mapping.Dialect, call upstream.Call) (Call, error) {
	switch {
	case call.FlagTypes != nil:
		return planFlagTypes(dialect, *call.FlagTypes)
	case call.Attachments != nil:
		return planAttachments(dialect, call.Operation, *call.Attachments)
	case call.CreateFlagType != nil:
		return planFlagTypeWrite(dialect, call.Operation, call.CreateFlagType.Members)
	case call.UpdateFlagTypes != nil:
		return planFlagTypeWrite(dialect, call.Operation, call.UpdateFlagTypes.Members, pathSelection(dialect, *call.UpdateFlagTypes))
	case call.CreateAttachment != nil:
		request := call.CreateAttachment
		planned, err := planWrite(dialect, call.Operation, request.Members(), "bug", orStandIn(dialect, request.Bugs[0], "ids"), "attachment")
		planned.Data = request.Data
		return planned, err
	case call.UpdateAttachments != nil:
		request := call.UpdateAttachments
		return planWrite(dialect, call.Operation, request.Members(), "bug", "attachment", strconv.FormatInt(request.IDs[0], 10))
	}
	return Call{}, fmt.Errorf("%q is not an operation", call.Operation)
}

// hasExpectedMembers reports whether a success has the members of its operation (tracker-behaviour.md sections 2 to 7). After an
// object without them the outcome of a write is unknown.
func hasExpectedMembers(operation mapping.Operation, members mapping.Members) bool {
	has := func(name string, kind jsontext.Kind) bool { return members.Get(name).Kind() == kind }
	switch operation {
	case mapping.OpCreateFlagType:
		return mapping.NewDocument(members.AppendJSON(nil)).ID() != 0
	case mapping.OpUpdateFlagTypes:
		return has("flagtypes", '[')
	case mapping.OpBugAttachments, mapping.OpAttachment:
		// The list is that of a lookup of bugs, and comments those of one of comments.
		return has("bugs", '{') && (has("attachments", '{') || has("comments", '{')) || has("bugs", '[')
	case mapping.OpCreateAttachment:
		return has("ids", '[') || has("attachments", '{') // the map of the dialect bmo
	case mapping.OpUpdateAttachments:
		return has("attachments", '[')
	}
	return true // flag types are checked when they are brought into their stable form
}

// planRead plans a read by REST, or by JSON-RPC where the address cannot carry what it names and the dialect has that.
func planRead(
	dialect mapping.Dialect, operation mapping.Operation, segments []string, query url.Values, method string, params func() mapping.Members,
) (Call, error) {
	path, err := resource(dialect, segments...)
	call := Call{Operation: operation, Method: http.MethodGet, Path: path, Query: query}
	if dialect.JSONRPC {
		call.long = func() Call {
			return Call{Operation: operation, Method: http.MethodPost, Path: jsonRPC, RPC: method, Body: params()}
		}
	}
	fits := err == nil
	for _, values := range query {
		fits = fits && !slices.ContainsFunc(values, func(text string) bool { return !fitsQuery(dialect, text) })
	}
	switch {
	case fits:
		return call, nil
	case call.long != nil:
		return call.long(), nil
	}
	return Call{}, mapping.Inexpressible("The tracker has no form for a read of %q.", strings.Join(segments, "/"))
}

// lists makes parameters of JSON-RPC that are lists of texts, without the empty ones.
func lists(texts url.Values) func() mapping.Members {
	return func() (params mapping.Members) {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if len(texts[name]) > 0 {
				list, _ := json.Marshal(texts[name], jsontext.AllowInvalidUTF8(true))
				params.Set(name, list)
			}
		}
		return params
	}
}

// planFlagTypes plans a flag type read. Names travel in the path where it can
// carry them, the component else in the query, and both else by JSON-RPC
// (tracker-behaviour.md sections 1 and 14).
func planFlagTypes(dialect mapping.Dialect, request mapping.FlagTypesRequest) (Call, error) {
	segments, query := []string{dialect.FlagTypeResource, request.Product}, url.Values{}
	var params mapping.Members
	params.SetText("product", request.Product)
	if request.Component != "" {
		params.SetText("component", request.Component)
		if fitsPath(dialect, request.Component) {
			segments = append(segments, request.Component)
		} else {
			query.Set("component", request.Component)
		}
	}
	call, err := planRead(dialect, mapping.OpFlagTypes, segments, query, mapping.OpFlagTypes.RPC(), func() mapping.Members { return params })
	if call.RPC != "" && len(query) == 0 {
		call.paths = rawPaths(dialect, segments)
	}
	return call, err
}

// rawPaths returns the REST paths by which some stock trackers find a product with a non-ASCII name: in UTF-8 with the mysql driver
// (5.0), and in Latin-1 with the mariadb driver (5.2), which does not decode a path (tracker-behaviour.md section 1, Encoded characters).
func rawPaths(dialect mapping.Dialect, segments []string) (paths []string) {
	dialect.ASCIIOnly = false
	var latin []byte
	names := []string{segments[1]}
	for _, r := range names[0] {
		latin = append(latin, byte(r))
	}
	if !strings.ContainsFunc(names[0], func(r rune) bool { return r > 0xff }) {
		names = append(names, string(latin))
	}
	for _, segments[1] = range names {
		if path, err := resource(dialect, segments...); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
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
	return planWrite(dialect, operation, body, append([]string{dialect.FlagTypeResource}, selection...)...)
}

func planWrite(dialect mapping.Dialect, operation mapping.Operation, body mapping.Members, segments ...string) (Call, error) {
	path, err := resource(dialect, segments...)
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
	if strings.Trim(name, "0123456789") == "" {
		return "names"
	}
	return orStandIn(dialect, name, "names")
}

// orStandIn returns what stands in the path for a name that the body has too: the name if it can.
func orStandIn(dialect mapping.Dialect, name, standIn string) string {
	if !fitsPath(dialect, name) {
		return standIn
	}
	return name
}

// planAttachments plans a read of the attachments of bugs, or of attachments by id.
func planAttachments(dialect mapping.Dialect, operation mapping.Operation, request mapping.AttachmentsRequest) (Call, error) {
	segments, query := upstream.AttachmentsAddress(operation, request)
	call, err := planRead(dialect, operation, segments, query, operation.RPC(), lists(url.Values{
		"ids": request.Bugs, "attachment_ids": request.Attachments, "include_fields": request.Include, "exclude_fields": request.Exclude,
	}))
	if call.RPC == "" {
		call.IfNoneMatch = request.IfNoneMatch
	}
	return call, err
}
