package upstream_test

import (
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// TestBadSamplingIsFound checks shares out of range and an unknown operation.
func TestBadSamplingIsFound(t *testing.T) {
	for _, bad := range []upstream.Sampling{{Default: -1}, {Default: 1.5}, {Operations: map[mapping.Operation]float64{"x": 1}}} {
		if bad.Validate() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
