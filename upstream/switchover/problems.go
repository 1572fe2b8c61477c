package switchover

import "fmt"

// Problem is one thing that is wrong with a table.
type Problem struct {
	// Rule is the place of the rule, -1 for the table itself.
	Rule int `json:"rule"`
	// Field is the rule's member as in JSON, such as products or reads; empty
	// when it is the rule as a whole.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Warning says that the table works nevertheless.
	Warning bool `json:"warning,omitempty"`
}

// String gives the problem in one line.
func (p Problem) String() string {
	switch {
	case p.Rule < 0:
		return p.Message
	case p.Field == "":
		return fmt.Sprintf("rule %d: %s", p.Rule+1, p.Message)
	default:
		return fmt.Sprintf("rule %d, %s: %s", p.Rule+1, p.Field, p.Message)
	}
}
