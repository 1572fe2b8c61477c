package canary_test

import (
	"context"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/state"
)

func benchCanary(b *testing.B, sampling canary.Sampling, refused bool) *canary.Canary {
	b.Helper()
	store, err := state.Open(b.Context(), "sqlite::memory:")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	none := refusing{}
	c := canary.New(canary.Complete(canary.Options{
		Trackers: map[string]upstream.Tracker{oldName: none, newName: none}, Store: store, Candidate: newName,
		Sampling: sampling, PerSecond: 1 << 30, Queue: 1 << 10,
		Refuses: func(string) bool { return refused },
	}))
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// refusing is a tracker that costs nothing.
type refusing struct{ upstream.Tracker }

// FlagTypes implements upstream.Tracker.
func (refusing) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return mapping.FlagTypes{}, &mapping.Error{Code: 1, Status: 502, Reason: mapping.ReasonUnreachable}
}

// BenchmarkAnswered is what a call of a client costs: without being sampled, with a
// share that takes almost none, with an answer in memory, and while the candidate is refused.
func BenchmarkAnswered(b *testing.B) {
	text := []byte(`{"attachment":[],"bug":[` + strings.Repeat(`{"id":1,"name":"n"},`, 200) + `{}]}`)
	call := flagTypes("TestProduct")
	caller := upstream.Caller{Credentials: upstream.Credentials{APIKey: "0123456789012345678901234567890123456789"}}
	for name, sampling := range map[string]canary.Sampling{
		"off": {}, "tiny share": {Operations: map[mapping.Operation]float64{mapping.OpFlagTypes: 1e-12}},
		"sticky": {Default: 1e-12, Sticky: true}, "sampled": {Default: 1}, "refused": {Default: 1},
	} {
		b.Run(name, func(b *testing.B) {
			c := benchCanary(b, sampling, name == "refused")
			document := mapping.NewDocument(text)
			b.ReportAllocs()
			for b.Loop() {
				document := document
				if name == "sampled" {
					document = mapping.NewDocument(text)
				}
				_ = c.Answered(b.Context(), caller, call, sides, upstream.Response{Document: document}).Close()
			}
		})
	}
}
