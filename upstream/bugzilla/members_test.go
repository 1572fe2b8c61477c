package bugzilla

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Members that the interface does not name are kept, those of errors too.
func TestErrorsKeepTheirMembers(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":true,"code":51,"message":"m","documentation":"d"}`:                      `{}`,
		`{"extra":5.0,"error":true,"code":51,"message":"m","details":{"field":["name"]}}`: `{"extra":5.0,"details":{"field":["name"]}}`,
		`{"error":1,"message":"m"}`: `{}`,
	} {
		client := dial(t, "bugzilla-5", answering(404, "application/json", body))
		_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
		said, ok := errors.AsType[*mapping.Error](err)
		if !ok || said.Status != 404 || said.Message != "m" {
			t.Fatalf("%s: got %v", body, err)
		}
		if got := string(said.Extra.AppendJSON(nil)); got != want {
			t.Errorf("%s keeps %s, want %s", body, got, want)
		}
	}
}

// An error is the same whichever way the tracker was asked.
func TestErrorsOfJSONRPCKeepTheirMembers(t *testing.T) {
	answer := `{"error":{"name":"JSONRPCError","code":51,"message":"m","documentation":"d","details":{"field":["name"]}},"id":1,"result":null}`
	client := dial(t, "bugzilla-5", answering(200, "application/json", answer))
	_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "a/b"}})
	checkError(t, err, 51, 404, "", false)
	said, _ := errors.AsType[*mapping.Error](err)
	if got := string(said.Extra.AppendJSON(nil)); got != `{"details":{"field":["name"]}}` || said.Documentation != "d" {
		t.Errorf("kept %s and the documentation %q", got, said.Documentation)
	}
}

// Clients format the ids of what they made as numbers.
func TestCreatedIDsAreIntegers(t *testing.T) {
	data, err := jsonblob.BlobFromEncoded("YQ==")
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	client := dial(t, "bugzilla-5", answering(201, "application/json", `{"ids":["5","6"]}`))
	files, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1"}, Data: data}})
	wantText(t, files.Document, err, `{"ids":[5,6]}`)
	client = dial(t, "bugzilla-5", answering(201, "application/json", `{"id":"5"}`))
	flagType, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{}})
	wantText(t, flagType.Document, err, `{"id":5,"flag_id":5}`)
}

// A tracker of the dialect bmo that has not told its version yet is taken for a stock one, and answers in its own way.
func TestCreatedIDsOfAnUnknownDialect(t *testing.T) {
	data, err := jsonblob.BlobFromEncoded("YQ==")
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	client := dial(t, "auto", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		answering(201, "application/json", `{"attachments":{"12":{"id":12},"9":{"id":9}}}`)(w, r)
	})
	files, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1", "2"}, Data: data}})
	wantText(t, files.Document, err, `{"attachments":{"12":{"id":12},"9":{"id":9}},"ids":[9,12]}`)
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
