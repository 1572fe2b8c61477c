package bugzilla

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// TestErrorsKeepTheirMembers: members that the interface does not name are kept, whichever way the tracker was asked.
func TestErrorsKeepTheirMembers(t *testing.T) {
	const byRPC = "a/b"
	for _, c := range []struct {
		product string
		status  int
		body    string
		want    string
	}{
		{"P", 404, `{"error":true,"code":51,"message":"m","documentation":"d"}`, `{}`},
		{"P", 404, `{"extra":5.0,"error":true,"code":51,"message":"m","details":{"field":["name"]}}`, `{"extra":5.0,"details":{"field":["name"]}}`},
		{"P", 404, `{"error":1,"message":"m"}`, `{}`},
		{byRPC, 200, `{"error":{"name":"JSONRPCError","code":51,"message":"m","documentation":"d","details":{"field":["name"]}},"id":1,"result":null}`,
			`{"details":{"field":["name"]}}`},
	} {
		client := dial(t, "bugzilla-5", answering(c.status, "application/json", c.body))
		_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: c.product}})
		said, ok := errors.AsType[*mapping.Error](err)
		if !ok || said.Status != 404 || said.Message != "m" || strings.Contains(c.body, "documentation") != (said.Documentation == "d") {
			t.Fatalf("%s: got %v", c.body, err)
		}
		if got := string(said.Extra.AppendJSON(nil)); got != c.want {
			t.Errorf("%s keeps %s, want %s", c.body, got, c.want)
		}
	}
}

// TestCreatedIDsAreIntegers: clients format the ids of what they made as numbers. A tracker of the dialect bmo that has not told its
// version yet is taken for a stock one, and responds in its own way.
func TestCreatedIDsAreIntegers(t *testing.T) {
	for _, c := range []struct {
		call       upstream.Call
		body, want string
	}{
		{everyCall()[5], `{"ids":["5","6"]}`, `{"ids":[5,6]}`},
		{everyCall()[5], `{"attachments":{"12":{"id":12},"9":{"id":9}}}`, `{"attachments":{"12":{"id":12},"9":{"id":9}},"ids":[9,12]}`},
		{everyCall()[1], `{"id":"5"}`, `{"id":5,"flag_id":5}`},
	} {
		client := dial(t, "auto", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.Error(w, "", http.StatusServiceUnavailable)
				return
			}
			answering(201, "application/json", c.body)(w, r)
		})
		made, err := client.Do(t.Context(), upstream.Caller{}, c.call)
		wantText(t, made.Document, err, c.want)
	}
}

func wantText(t *testing.T, document *mapping.Document, err error, want string) {
	t.Helper()
	var text bytes.Buffer
	if err == nil {
		_, err = document.WriteTo(&text)
	}
	if err != nil || text.String() != want {
		t.Errorf("got %s (%v), want %s", text.String(), err, want)
	}
}
