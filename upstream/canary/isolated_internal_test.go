package canary

import (
	"context"
	"testing"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// saysOfMarker is a tracker that has the marker product, or an error instead.
type saysOfMarker struct {
	upstream.Tracker
	err error
}

func (s *saysOfMarker) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	if s.err != nil {
		return mapping.FlagTypes{}, s.err
	}
	return mapping.FlagTypes{Document: mapping.NewDocument([]byte(`{"bug":[],"attachment":[]}`))}, nil
}

// TestProofOfIsolation: only the tracker's own word that it has no such product tells it from the candidate.
func TestProofOfIsolation(t *testing.T) {
	store, err := state.Open(t.Context(), "sqlite::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	away := &mapping.Error{Code: mapping.CodeBadGateway, Status: 502, Reason: mapping.ReasonUnreachable}
	none := &mapping.Error{Code: 106, Status: 401, Message: "no such product"}
	for name, test := range map[string]struct {
		reference, candidate error
		proved               bool
	}{
		"the reference has none": {none, nil, true},
		"both have it":           {nil, nil, false},
		"neither has it":         {none, none, false},
		"the reference is away":  {away, nil, false},
		"the reference fails":    {&mapping.Error{Code: 100500, Status: 500}, nil, false},
		"the candidate is away":  {none, away, false},
	} {
		c := New(Complete(Options{
			Trackers: map[string]upstream.Tracker{"old": &saysOfMarker{err: test.reference}, "new": &saysOfMarker{err: test.candidate}},
			Store:    store, Candidate: "new", Marker: "M", Isolated: true,
		}))
		if proved := c.provesIsolation(t.Context()); proved != test.proved {
			t.Errorf("%s: proved is %t", name, proved)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
