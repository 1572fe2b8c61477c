package bugzilla

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
)

// Bug tells where a bug belongs, by id or alias, with the caller's own credential.
// Codes: 100, 101, 102.
func (c *Client) Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error) {
	call, err := planBugs(c.Dialect(ctx), []string{strings.TrimSpace(ref)}, "id", "product", "component")
	if err != nil {
		return mapping.Place{}, err
	}
	var answer struct {
		Bugs []struct {
			ID        int64  `json:"id"`
			Product   string `json:"product"`
			Component string `json:"component"`
		} `json:"bugs"`
	}
	if err := c.lookUp(ctx, caller, call, &answer); err != nil {
		return mapping.Place{}, err
	}
	if len(answer.Bugs) != 1 || answer.Bugs[0].ID == 0 || answer.Bugs[0].Product == "" {
		return mapping.Place{}, failure(&call, bad("the tracker's answer does not tell where the bug belongs"))
	}
	bug := answer.Bugs[0]
	return mapping.Place{Bug: bug.ID, Product: bug.Product, Component: bug.Component}, nil
}

// planBugs plans the question for fields of bugs. An alias that neither path nor query
// carries goes by JSON-RPC, as for attachments.
func planBugs(dialect mapping.Dialect, refs []string, fields ...string) (Call, error) {
	long := longForm(dialect, func() Call { return rpcBugs(refs, fields) })
	path, err := resource(dialect, "bug", refs[0])
	misfit := func(ref string) bool { return !fitsQuery(dialect, ref) }
	switch {
	case err == nil && !slices.ContainsFunc(refs[1:], misfit):
		query := url.Values{}
		addAll(query, "ids", refs[1:])
		setList(query, "include_fields", fields)
		return Call{Operation: mapping.OpBugAttachments, Method: http.MethodGet, Path: path, Query: query, long: long}, nil
	case long != nil:
		return long(), nil
	default:
		return Call{}, mapping.Inexpressible("The tracker cannot be asked for the bugs %q.", refs)
	}
}

func rpcBugs(refs, fields []string) Call {
	var params mapping.Members
	setTexts(&params, "ids", refs)
	setTexts(&params, "include_fields", fields)
	return rpcRead(mapping.OpBugAttachments, "Bug.get", params)
}

// AttachmentBug tells which bug an attachment hangs on, 0 when there is no such
// attachment. Codes: 102, 304.
func (c *Client) AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error) {
	text := strconv.FormatInt(id, 10)
	reply, err := c.Attachment(ctx, caller, mapping.AttachmentsRequest{Attachments: []string{text}, Include: []string{"id", "bug_id"}})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Attachments map[string]struct {
			Bug int64 `json:"bug_id"`
		} `json:"attachments"`
	}
	call := Call{Operation: mapping.OpAttachment}
	if err := c.decode(&call, reply.Document, &answer); err != nil {
		return 0, err
	}
	return answer.Attachments[text].Bug, nil
}

// lookUp makes a planned call and decodes its answer.
func (c *Client) lookUp(ctx context.Context, caller upstream.Caller, call Call, answer any) error {
	response, err := c.send(ctx, caller, &call)
	if err != nil {
		return failure(&call, err)
	}
	asked := call
	asked.Operation = mapping.OpFlagTypes // the answer is judged here, not by what attachments have
	document, err := c.answer(&asked, response)
	if err != nil {
		return failure(&call, err)
	}
	return c.decode(&call, document, answer)
}

// decode reads an answer and closes it.
func (c *Client) decode(call *Call, document *mapping.Document, answer any) error {
	text, err := document.Load(c.split)
	if err != nil {
		return failure(call, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		unusable := bad("the tracker's answer is not what was asked for: " + err.Error())
		return failure(call, errors.Join(unusable, document.Close()))
	}
	return document.Close()
}
