package canary

import (
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Compare gives the differences between what the answering tracker said and what
// the other one said, in a stable order: status, code, message, headers, body.
// Those that a rule excuses are among them and name it. It only looks at its
// arguments, and takes time in proportion to their length.
func Compare(operation mapping.Operation, answered, other Reply, rules Rules) []Difference {
	return nil
}

// ComparePlans compares the requests that two trackers would be sent for the same
// call, given as JSON objects. All differences are of ClassPlan.
func ComparePlans(operation mapping.Operation, answered, other jsontext.Value, rules Rules) []Difference {
	return nil
}
