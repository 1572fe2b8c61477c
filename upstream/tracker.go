package upstream

import (
	"context"
	"errors"

	"portico/mapping"
)

// Tracker is one tracker, or several behind one, or one with a cache before it.
type Tracker interface {
	// Do makes a call. Errors that a client may see are *mapping.Error, with the codes that docs/reference/interface.md lists for the
	// operation; any other error is a failure of Portico's own. Beside an error the reply has no document, and nothing to close.
	// Otherwise the caller closes the reply. The payload of a request is closed by the maker of the request, which Do does
	// not change. Do is safe for concurrent use and keeps nothing of a Caller beyond the call.
	Do(ctx context.Context, caller Caller, call Call) (mapping.Reply, error)
}

// Comment is one on an attachment.
type Comment struct {
	Text string `json:"text"`
	Time string `json:"time"`
}

// ErrNotLocal is the error of Peek when the memory of this process holds no response.
var ErrNotLocal = errors.New("no response in the memory of this process")

// Peeker is a Tracker that may hold responses to flag type reads in the memory of this process.
type Peeker interface {
	// Peek is Do from that memory only: it does not wait, and asks neither Redis nor a tracker. After ErrNotLocal the request is as if it
	// had not been made, and Do decides. Any other error is that of Do: the tracker would refuse the read.
	Peek(ctx context.Context, caller Caller, request mapping.FlagTypesRequest) (mapping.Reply, error)
}

// Refuser is a Tracker that can tell without waiting that it would refuse a read.
type Refuser interface {
	// Refuse returns the error of Do for a read that would be refused now, without asking a tracker, or nil. A read that it refuses counts
	// as made.
	Refuse(caller Caller, operation mapping.Operation) error
}

// Refuse asks a tracker that is a Refuser. Any other one refuses nothing.
func Refuse(tracker Tracker, caller Caller, operation mapping.Operation) error {
	if refuser, ok := tracker.(Refuser); ok {
		return refuser.Refuse(caller, operation)
	}
	return nil
}

// ReadFlagTypes reads flag types of a tracker, or with peek of what it holds in the memory of this process.
func ReadFlagTypes(ctx context.Context, tracker Tracker, caller Caller, request mapping.FlagTypesRequest, peek bool) (mapping.Reply, error) {
	if !peek {
		asked := request // a copy, so that peeking puts nothing on the heap
		return tracker.Do(ctx, caller, Call{Operation: mapping.OpFlagTypes, FlagTypes: &asked})
	}
	if local, ok := tracker.(Peeker); ok {
		return local.Peek(ctx, caller, request)
	}
	return mapping.Reply{}, ErrNotLocal
}
