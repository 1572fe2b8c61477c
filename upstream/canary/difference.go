package canary

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Class names a kind of difference. The names appear in findings, metrics and
// rules, so they never change.
type Class string

// The classes.
const (
	// ClassStatus, ClassCode and ClassMessage are of the answer as a whole, and
	// ClassHeader is of one header that is compared.
	ClassStatus  Class = "status"
	ClassCode    Class = "code"
	ClassMessage Class = "message"
	ClassHeader  Class = "header"
	// ClassMissing is what only the answering tracker has, ClassExtra what only the
	// other one has.
	ClassMissing Class = "missing"
	ClassExtra   Class = "extra"
	// ClassNull is null on exactly one side. ClassType is another JSON type
	// otherwise, and also a number that is an integer on one side only (1 and
	// 1.0): equal in value, but a client that reads integers stumbles over one.
	ClassNull Class = "null"
	ClassType Class = "type"
	// ClassValue is another value of the same type.
	ClassValue Class = "value"
	// ClassTime is another time in the same notation; another notation is ClassValue.
	ClassTime Class = "time"
	// ClassOrder is an array whose elements are the same in another order, said once
	// per array. ClassSet is an array without order whose elements differ.
	ClassOrder Class = "order"
	ClassSet   Class = "set"
	// ClassDigest is another content of an attachment, or another answer where only
	// digests were compared.
	ClassDigest Class = "digest"
	// ClassFailure is an answer on one side only.
	ClassFailure Class = "failure"
	// ClassPlan is another request that a tracker would be sent for the same write.
	ClassPlan Class = "plan"
	// ClassLatency is a tracker that is slower than it may be.
	ClassLatency Class = "latency"
)

// Classes lists all classes.
func Classes() []Class {
	return []Class{
		ClassStatus, ClassCode, ClassMessage, ClassHeader, ClassMissing, ClassExtra, ClassNull, ClassType,
		ClassValue, ClassTime, ClassOrder, ClassSet, ClassDigest, ClassFailure, ClassPlan, ClassLatency,
	}
}

// Paths of differences that are not in a body. Those of headers begin with
// PathHeader, and those of bodies with $.
const (
	PathStatus  = "status"
	PathCode    = "code"
	PathMessage = "message"
	PathHeader  = "header."
	PathFailure = "failure"
	// PathRefused is that of a plan that one side's tracker has no form for.
	PathRefused = "refused"
)

// Difference is one difference between two replies.
type Difference struct {
	Class Class `json:"class"`
	// Path is the same wherever the same thing differs: arrays of things with ids
	// are [id], objects with ids as names and all other arrays [*], such as
	// $.bugs[*][id].flags[id].status. No data is in it.
	Path string `json:"path"`
	// Pointer is the place in these replies: Path with ids and positions.
	Pointer string `json:"pointer"`
	// Want is what the answering tracker said, Have what the other one said, as raw
	// JSON; nil means absent.
	Want jsontext.Value `json:"want,omitempty"`
	Have jsontext.Value `json:"have,omitempty"`
	// Rule names the equivalence that excuses the difference, empty when none does.
	Rule string `json:"rule,omitempty"`

	// Place is the path of the attachment, flag type or record that has the
	// difference, empty where there is none; WantIn and HaveIn are that object.
	Place          string         `json:"-"`
	WantIn, HaveIn jsontext.Value `json:"-"`
}

// Signature is the id of all differences of one class at one path in the
// answers of an operation: 16 hexadecimal digits.
func (d Difference) Signature(operation mapping.Operation) string {
	sum := sha256.Sum256([]byte(string(operation) + "\x00" + string(d.Class) + "\x00" + d.Path))
	return hex.EncodeToString(sum[:8])
}
