package upstream

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"portico/mapping"
)

// Sampling says which calls a Shadow takes.
type Sampling struct {
	// Default is the share of calls, from 0 to 1, of operations without their own.
	Default float64 `json:"default" key:"sample" default:"1" min:"0" max:"1"`
	// Operations are other shares for single operations.
	Operations map[mapping.Operation]float64 `json:"operations,omitempty" key:"operations" min:"0" max:"1"`
	// Sticky takes the same share of the callers instead, always the same ones as
	// long as the process lives.
	Sticky bool `json:"sticky" key:"sticky"`
}

// Validate finds invalid shares and operations that do not exist.
func (s Sampling) Validate() error {
	var wrong []error
	if !isShare(s.Default) {
		wrong = append(wrong, fmt.Errorf("the share %v is not between 0 and 1", s.Default))
	}
	for operation, share := range s.Operations {
		if !slices.Contains(mapping.Operations(), operation) {
			wrong = append(wrong, fmt.Errorf("there is no operation %q", operation))
		}
		if !isShare(share) {
			wrong = append(wrong, fmt.Errorf("the share %v of %s is not between 0 and 1", share, operation))
		}
	}
	return errors.Join(wrong...)
}

// isShare is false for NaN too.
func isShare(share float64) bool { return share >= 0 && share <= 1 }

// Clone returns a copy that shares nothing with s.
func (s Sampling) Clone() Sampling {
	s.Operations = maps.Clone(s.Operations)
	return s
}

// Share returns the share of the calls of an operation.
func (s *Sampling) Share(operation mapping.Operation) float64 {
	if share, own := s.Operations[operation]; own {
		return share
	}
	return s.Default
}

// Takes decides about one call. The salt of sticky sampling must be secret, so that no client can choose a credential that is never
// taken.
func (s *Sampling) Takes(operation mapping.Operation, caller *Caller, salt string) bool {
	share := s.Share(operation)
	if s.Sticky && share > 0 && share < 1 {
		return caller.Position(salt) < share
	}
	return rand.Float64() < share
}
