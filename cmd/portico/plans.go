package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// plannedCall is a request to a tracker as plans are compared: without credentials
// and without the content of attachments.
type plannedCall struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	RPC    string         `json:"rpc,omitempty"`
	Query  url.Values     `json:"query,omitempty"`
	Body   jsontext.Value `json:"body,omitempty"`
}

// planner gives the function that renders what each tracker would be sent for a
// write, in its own dialect.
func planner(clients map[string]*bugzilla.Client) func(context.Context, string, upstream.Call) ([]byte, error) {
	return func(ctx context.Context, tracker string, call upstream.Call) ([]byte, error) {
		client := clients[tracker]
		if client == nil {
			return nil, fmt.Errorf("no tracker is called %s", tracker)
		}
		dialect := client.Dialect(ctx)
		dialect.Root = "" // where the web server has the interface is no difference that matters
		planned, err := planWrite(dialect, call)
		if err != nil {
			return nil, err
		}
		shown := plannedCall{Method: planned.Method, Path: planned.Path, RPC: planned.RPC, Query: planned.Query}
		if planned.Body != nil {
			shown.Body = planned.Body.AppendJSON(nil)
		}
		return json.Marshal(shown)
	}
}

// planWrite plans one of the four writes.
func planWrite(dialect mapping.Dialect, call upstream.Call) (bugzilla.Call, error) {
	switch {
	case call.CreateFlagType != nil:
		return bugzilla.PlanCreateFlagType(dialect, *call.CreateFlagType)
	case call.UpdateFlagTypes != nil:
		return bugzilla.PlanUpdateFlagTypes(dialect, *call.UpdateFlagTypes)
	case call.CreateAttachment != nil:
		return bugzilla.PlanCreateAttachment(dialect, *call.CreateAttachment)
	case call.UpdateAttachments != nil:
		return bugzilla.PlanUpdateAttachments(dialect, *call.UpdateAttachments)
	}
	return bugzilla.Call{}, fmt.Errorf("%s is no write", call.Operation)
}
