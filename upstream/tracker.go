package upstream

import (
	"context"
	"errors"

	"portico/mapping"
)

// Tracker is one tracker, or several behind one, or one with a cache before it.
//
// Errors that a client may see are *mapping.Error; any other error is a failure
// of Portico's own. A failed method returns a reply that needs no Close. Replies
// of successful methods are closed by the caller; payloads in requests are
// closed by the maker of the request. Implementations are safe for concurrent use
// and keep nothing of a Caller beyond the call.
type Tracker interface {
	// FlagTypes stands for GET /rest/flag_type/P and /rest/flag_type/P/C.
	// Codes: 51 no such component, 106 no such product or out of sight, 306 bad key.
	FlagTypes(ctx context.Context, caller Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error)

	// CreateFlagType stands for POST /rest/flag_type. Codes: 50, 51, 53, 106,
	// 304, 410, 501, 1101 to 1104, 68000.
	CreateFlagType(ctx context.Context, caller Caller, request mapping.FlagTypeCreate) (mapping.FlagTypeCreated, error)

	// UpdateFlagTypes stands for PUT /rest/flag_type/X. All selected types change
	// or none. Codes: 51 no such id, 52, 106, 304, 410, 1101 to 1105, 67399.
	UpdateFlagTypes(ctx context.Context, caller Caller, request mapping.FlagTypeUpdate) (mapping.FlagTypesUpdated, error)

	// BugAttachments stands for GET /rest/bug/B/attachment. Private attachments
	// are left out for who may not see them. Codes: 100, 101, 102, 304.
	BugAttachments(ctx context.Context, caller Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error)

	// Attachment stands for GET /rest/bug/attachment/A. An unknown id is no error
	// but an empty answer. Codes: 52, 102, 304 private.
	Attachment(ctx context.Context, caller Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error)

	// CreateAttachment stands for POST /rest/bug/B/attachment. All bugs get the
	// attachment or none. Where the request has a PathBug, the tracker is asked
	// first which bugs its names mean. Codes: 50, 100 to 102, 113, 114, 129 to 134, 410, 600 to 606.
	CreateAttachment(ctx context.Context, caller Caller, request mapping.AttachmentCreate) (mapping.AttachmentsCreated, error)

	// UpdateAttachments stands for PUT /rest/bug/attachment/A. All or nothing.
	// Codes: 52, 113, 114, 129 to 134, 410, 601, 604, 32000, 67399.
	UpdateAttachments(ctx context.Context, caller Caller, request mapping.AttachmentUpdate) (mapping.AttachmentsUpdated, error)
}

// ErrNotLocal is the error of Peek when the memory of this process holds no response.
var ErrNotLocal = errors.New("no response in the memory of this process")

// Peeker is a Tracker that may hold responses to flag type reads in the memory of this process.
type Peeker interface {
	// Peek is FlagTypes from that memory only: it does not wait, and asks neither Redis nor a tracker. After an error,
	// which is usually ErrNotLocal, the request is as if it had not been made, and FlagTypes decides.
	Peek(ctx context.Context, caller Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error)
}
