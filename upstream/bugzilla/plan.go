package bugzilla

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// jsonRPC is the endpoint that takes names in a body (wire-facts.md section 1).
const jsonRPC = "/jsonrpc.cgi"

// PlanFlagTypes plans a flag type read. Names travel in the path where it can
// carry them, the component else in the query, and both else by JSON-RPC. A
// component with a slash goes in the query of every dialect: that is where the
// code that all of them share looks too, whatever the server before it makes of
// the path (wire-facts.md sections 1 and 9).
func PlanFlagTypes(dialect mapping.Dialect, request mapping.FlagTypesRequest) (Call, error) {
	call := Call{Operation: mapping.OpFlagTypes, Method: http.MethodGet, Query: url.Values{}}
	segments := []string{dialect.FlagTypeResource, request.Product}
	if request.Component != "" && !strings.Contains(request.Component, "/") && fitsPath(dialect, request.Component) {
		segments = append(segments, request.Component)
	} else if request.Component != "" {
		call.Query.Set("component", request.Component)
	}
	path, err := resource(dialect, segments...)
	call.long = longForm(dialect, func() Call { return rpcFlagTypes(request) })
	switch {
	case err == nil && fitsQuery(dialect, request.Component):
		call.Path = path
		return call, nil
	case call.long != nil:
		return call.long(), nil
	default:
		return Call{}, mapping.Inexpressible("The tracker cannot be asked for product %q, component %q.", request.Product, request.Component)
	}
}

func rpcFlagTypes(request mapping.FlagTypesRequest) Call {
	var params mapping.Members
	params.SetText("product", request.Product)
	if request.Component != "" {
		params.SetText("component", request.Component)
	}
	return rpcRead(mapping.OpFlagTypes, "FlagType.get", params)
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
	if !dialect.FlagTypeWrites {
		return Call{}, noFlagTypeWrites(dialect)
	}
	body, err := request.Members(dialect)
	if err != nil {
		return Call{}, err
	}
	path, err := resource(dialect, dialect.FlagTypeResource)
	return Call{Operation: mapping.OpCreateFlagType, Method: http.MethodPost, Path: path, Body: body}, err
}

// PlanUpdateFlagTypes plans a flag type update. The selection goes in the body,
// where the tracker takes it in place of the path's; the path names the first
// one if it can.
func PlanUpdateFlagTypes(dialect mapping.Dialect, request mapping.FlagTypeUpdate) (Call, error) {
	if !dialect.FlagTypeWrites {
		return Call{}, noFlagTypeWrites(dialect)
	}
	body, err := request.Members(dialect)
	if err != nil {
		return Call{}, err
	}
	path, err := resource(dialect, dialect.FlagTypeResource, pathSelection(dialect, request))
	return Call{Operation: mapping.OpUpdateFlagTypes, Method: http.MethodPut, Path: path, Body: body}, err
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

// longestSegment is the most that a name which the body has too takes up in a path. Nothing that a tracker has is so long,
// and the path stays far from what web servers take.
const longestSegment = 4096

// orStandIn gives what stands in the path for a name that the body has too: the name if it can.
func orStandIn(dialect mapping.Dialect, name, standIn string) string {
	if !fitsPath(dialect, name) || len(url.PathEscape(name)) > longestSegment {
		return standIn
	}
	return name
}

func noFlagTypeWrites(dialect mapping.Dialect) error {
	err := mapping.Inexpressible("A tracker of the dialect %s has no way to create or update flag types.", dialect.Name)
	err.Code, err.Status = mapping.CodeNoResource, http.StatusNotFound
	return err
}

// PlanBugAttachments plans a read of the attachments of bugs.
func PlanBugAttachments(dialect mapping.Dialect, request mapping.AttachmentsRequest) (Call, error) {
	path, err := resource(dialect, "bug", request.Bugs[0], "attachment")
	return planAttachments(dialect, mapping.OpBugAttachments, path, err, request, request.Bugs[1:], request.Attachments)
}

// PlanAttachment plans a read of attachments by id.
func PlanAttachment(dialect mapping.Dialect, request mapping.AttachmentsRequest) (Call, error) {
	path, err := resource(dialect, "bug", "attachment", request.Attachments[0])
	return planAttachments(dialect, mapping.OpAttachment, path, err, request, request.Bugs, request.Attachments[1:])
}

func planAttachments(dialect mapping.Dialect, operation mapping.Operation, path string, pathErr error,
	request mapping.AttachmentsRequest, moreBugs, moreAttachments []string,
) (Call, error) {
	request.Include, request.Exclude = distinct(request.Include), distinct(request.Exclude)
	long := longForm(dialect, func() Call { return rpcAttachments(operation, request) })
	misfit := func(bug string) bool { return !fitsQuery(dialect, bug) }
	switch {
	case pathErr == nil && !slices.ContainsFunc(moreBugs, misfit):
		query := url.Values{}
		addAll(query, "ids", moreBugs)
		addAll(query, "attachment_ids", moreAttachments)
		setList(query, "include_fields", request.Include)
		setList(query, "exclude_fields", request.Exclude)
		return Call{
			Operation: operation, Method: http.MethodGet, Path: path, Query: query, IfNoneMatch: request.IfNoneMatch, long: long,
		}, nil
	case long != nil:
		return long(), nil
	default:
		return Call{}, mapping.Inexpressible("The tracker cannot be asked for the bugs %q.", request.Bugs)
	}
}

func rpcAttachments(operation mapping.Operation, request mapping.AttachmentsRequest) Call {
	var params mapping.Members
	setTexts(&params, "ids", request.Bugs)
	setTexts(&params, "attachment_ids", request.Attachments)
	setTexts(&params, "include_fields", request.Include)
	setTexts(&params, "exclude_fields", request.Exclude)
	return rpcRead(operation, "Bug.attachments", params)
}

// distinct gives each text once, in the order of its first place.
func distinct(texts []string) []string {
	var once []string
	seen := make(map[string]bool, len(texts))
	for _, text := range texts {
		if !seen[text] {
			once = append(once, text)
		}
		seen[text] = true
	}
	return once
}

// setList joins names of fields, which hold no comma, in the shortest form that trackers read (wire-facts.md section 5).
func setList(query url.Values, name string, values []string) {
	if len(values) > 0 {
		query.Set(name, strings.Join(values, ","))
	}
}

func addAll(query url.Values, name string, values []string) {
	for _, value := range values {
		query.Add(name, value)
	}
}

func setTexts(params *mapping.Members, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list, _ = jsontext.AppendQuote(list, text)
	}
	params.Set(name, append(list, ']'))
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
