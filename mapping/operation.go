package mapping

// Operation names one of the seven operations of interface.md. The names
// appear in metrics, logs and rules, so they never change.
type Operation string

// The operations, in the order of interface.md, Endpoints.
const (
	OpFlagTypes         Operation = "flag_type.get"
	OpCreateFlagType    Operation = "flag_type.create"
	OpUpdateFlagTypes   Operation = "flag_type.update"
	OpBugAttachments    Operation = "attachment.list"
	OpAttachment        Operation = "attachment.get"
	OpCreateAttachment  Operation = "attachment.create"
	OpUpdateAttachments Operation = "attachment.update"
)

// Operations lists all seven in the order of interface.md.
func Operations() []Operation {
	return []Operation{
		OpFlagTypes, OpCreateFlagType, OpUpdateFlagTypes,
		OpBugAttachments, OpAttachment, OpCreateAttachment, OpUpdateAttachments,
	}
}

// IsWrite tells whether the operation changes the tracker. Writes need a
// login (wire-facts.md section 1, order of checks) and are never repeated.
func (o Operation) IsWrite() bool {
	switch o {
	case OpCreateFlagType, OpUpdateFlagTypes, OpCreateAttachment, OpUpdateAttachments:
		return true
	default:
		return false
	}
}

// SuccessStatus is the HTTP status of a successful answer: 201 for creates,
// 200 otherwise (wire-facts.md sections 3 and 6).
func (o Operation) SuccessStatus() int {
	if o == OpCreateFlagType || o == OpCreateAttachment {
		return 201
	}
	return 200
}
