package bugzilla

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// TestRedirectNobodyCanRead: http.Client fails at an address that it cannot read before it asks whether to follow it.
func TestRedirectNobodyCanRead(t *testing.T) {
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[::1/?token=SECRET")
		w.WriteHeader(http.StatusFound)
	})
	_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	checkError(t, err, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false)
	if said, _ := errors.AsType[*mapping.Error](err); strings.Contains(said.Err.Error(), "SECRET") {
		t.Errorf("the cause shows the address: %v", said.Err)
	}
	_, err = client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
	checkError(t, err, mapping.CodeTimeout, 504, mapping.ReasonBadResponse, true)
}

// TestFailuresOfUnknownKind: what the transport does not explain leaves open what became of a write.
func TestFailuresOfUnknownKind(t *testing.T) {
	if write, read := Failure(errors.New("?"), true), Failure(errors.New("?"), false); !write.Unknown || write.Status != 504 || read.Unknown {
		t.Errorf("write %+v, read %+v", write, read)
	}
}
