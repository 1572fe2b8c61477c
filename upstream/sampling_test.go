package upstream_test

import (
	"strconv"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// TestSamplingTakesItsShare of calls, or with Sticky of callers: all calls of a caller or none.
func TestSamplingTakesItsShare(t *testing.T) {
	for name, test := range map[string]struct {
		sampling upstream.Sampling
		min, max int
	}{
		"none":           {upstream.Sampling{}, 0, 0},
		"all":            {upstream.Sampling{Default: 1}, 2000, 2000},
		"a quarter":      {upstream.Sampling{Default: 0.25}, 350, 650},
		"of others":      {upstream.Sampling{Default: 1, Operations: map[mapping.Operation]float64{mapping.OpFlagTypes: 0}}, 0, 0},
		"sticky":         {upstream.Sampling{Default: 0.5, Sticky: true}, 800, 1200},
		"all and sticky": {upstream.Sampling{Default: 1, Sticky: true}, 2000, 2000},
	} {
		taken := 0
		for i := range 1000 {
			caller := upstream.Caller{Address: "192.0.2.1", Credentials: upstream.Credentials{APIKey: "key" + strconv.Itoa(i)}}
			first := test.sampling.Takes(mapping.OpFlagTypes, &caller, "salt")
			second := test.sampling.Takes(mapping.OpFlagTypes, &caller, "salt")
			for _, takes := range []bool{first, second} {
				if takes {
					taken++
				}
			}
			if test.sampling.Sticky && first != second {
				t.Errorf("%s: one call of caller %d is taken, and one is not", name, i)
			}
		}
		if taken < test.min || taken > test.max {
			t.Errorf("%s: %d of 2000 calls are taken", name, taken)
		}
	}
}

// TestBadSamplingIsFound checks shares out of range and an unknown operation.
func TestBadSamplingIsFound(t *testing.T) {
	for _, bad := range []upstream.Sampling{{Default: -1}, {Default: 1.5}, {Operations: map[mapping.Operation]float64{"x": 1}}} {
		if bad.Validate() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
