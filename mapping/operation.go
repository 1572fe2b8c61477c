package mapping

import "net/http"

// Operation names one of the seven operations of interface.md. The names
// appear in metrics, logs and rules, so they never change.
type Operation string

// The operations, in the order of interface.md section 3.
const (
	OpFlagTypes         Operation = "flag_type.get"
	OpCreateFlagType    Operation = "flag_type.create"
	OpUpdateFlagTypes   Operation = "flag_type.update"
	OpBugAttachments    Operation = "attachment.list"
	OpAttachment        Operation = "attachment.get"
	OpCreateAttachment  Operation = "attachment.create"
	OpUpdateAttachments Operation = "attachment.update"
)

// descriptor is everything about an operation that does not depend on a request. Statuses, retries and idempotency
// derive from it.
type descriptor struct {
	operation Operation
	method    string
	// path is below /rest. Segments in braces vary; the last one of a flag type
	// read may be missing.
	path string
	// title says in words what the operation does.
	title string
	// rpc is its method in the older interfaces. Both reads of attachments have the same one.
	rpc string
	// check says of a write how a client finds out what became of it.
	check string
}

// descriptors are in the order of interface.md section 3.
var descriptors = []descriptor{
	{OpFlagTypes, http.MethodGet, "/flag_type/{product}/{component}", "Read flag types", "FlagType.get", ""},
	{
		OpCreateFlagType, http.MethodPost, "/flag_type", "Create a flag type", "FlagType.create",
		"Read the flag types of a product it applies to before creating it again.",
	},
	{
		OpUpdateFlagTypes, http.MethodPut, "/flag_type/{id_or_name}", "Update flag types", "FlagType.update",
		"Read the flag types of a product it applies to; sending the same update again does no harm.",
	},
	{OpBugAttachments, http.MethodGet, "/bug/{bug_id}/attachment", "List a bug’s attachments", "Bug.attachments", ""},
	{OpAttachment, http.MethodGet, "/bug/attachment/{attachment_id}", "Read an attachment", "Bug.attachments", ""},
	{
		OpCreateAttachment, http.MethodPost, "/bug/{bug_id}/attachment", "Create an attachment", "Bug.add_attachment",
		"List the attachments of the bug before sending it again.",
	},
	{
		OpUpdateAttachments, http.MethodPut, "/bug/attachment/{attachment_id}", "Update attachments", "Bug.update_attachment",
		"Read the attachment; sending the same fields again does no harm, but flags and comments may double.",
	},
}

// Operations lists all seven in the order of interface.md.
func Operations() (list []Operation) {
	for _, d := range descriptors {
		list = append(list, d.operation)
	}
	return list
}

// descriptor returns the zero value for a name that is not one of the seven.
func (o Operation) descriptor() *descriptor {
	for i := range descriptors {
		if descriptors[i].operation == o {
			return &descriptors[i]
		}
	}
	return &descriptor{}
}

// Method is the HTTP method of the operation, empty for an unknown one.
func (o Operation) Method() string { return o.descriptor().method }

// Path is the path of the operation below /rest, with the names of its variable
// segments in braces: /flag_type/{product}/{component}.
func (o Operation) Path() string { return o.descriptor().path }

// Title says in words what the operation does, empty for an unknown one.
func (o Operation) Title() string { return o.descriptor().title }

// RPC is the method of the operation in JSON-RPC and XML-RPC, empty for an unknown one.
func (o Operation) RPC() string { return o.descriptor().rpc }

// Check says how a client finds out what became of a write whose outcome is unknown, empty for a read.
func (o Operation) Check() string { return o.descriptor().check }

// IsWrite reports whether the operation changes the tracker. Writes need a
// login (tracker-behaviour.md section 1, order of checks) and are never repeated.
func (o Operation) IsWrite() bool { return o.IsCreate() || o.Method() == http.MethodPut }

// IsCreate reports whether the operation creates something. A create can be sent
// again with an Idempotency-Key.
func (o Operation) IsCreate() bool { return o.Method() == http.MethodPost }

// SuccessStatus is the HTTP status of a successful response: 201 for creates,
// 200 otherwise (tracker-behaviour.md sections 3 and 6).
func (o Operation) SuccessStatus() int {
	if o.IsCreate() {
		return http.StatusCreated
	}
	return http.StatusOK
}
