package bugzilla

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// creating makes a client of a tracker that keeps what it was asked, and answers questions for bugs with one answer.
func creating(t *testing.T, dialect, bugs string) (client *Client, asked *[]string) {
	t.Helper()
	asked = new([]string)
	return dial(t, dialect, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodPost && r.URL.Path != jsonRPC:
			*asked = append(*asked, "POST "+r.URL.EscapedPath())
			_, _ = io.WriteString(w, `{"ids":[1]}`)
		case r.URL.Path == jsonRPC:
			*asked = append(*asked, string(body))
			_, _ = io.WriteString(w, `{"error":null,"id":1,"result":`+bugs+`}`)
		default:
			*asked = append(*asked, "GET "+r.RequestURI)
			_, _ = io.WriteString(w, bugs)
		}
	}), asked
}

// TestWhatIsAskedBeforeACreate: nothing, where the names tell enough.
func TestWhatIsAskedBeforeACreate(t *testing.T) {
	for _, c := range []struct {
		path, ids string
		bugs      string
		want      []string
		won       bool
	}{
		{"7", ``, "", nil, false},
		{"al", ``, "", nil, false},
		{"7", `"ids":[8,7],`, "", nil, false},
		{"7", `"ids":[8],`, "", nil, true},
		{"al", `"ids":[8,"AL"],`, "", nil, false},
		{"7", `"ids":["al"," 007"],`, "", nil, false},
		{"al", `"ids":[8,7],`, `{"bugs":[{"id":7,"product":"P"}]}`, []string{"GET /rest/bug/al?include_fields=id,product,component"}, false},
		{"7", `"ids":["al","b,c",8,"AL"],`, `{"bugs":[{"id":9,"product":"P"},{"id":7,"product":"P"}]}`, []string{"GET /rest/bug/al?ids=b,c&include_fields=id,product,component"}, false},
		{"7", `"ids":["al","b"],`, `{"bugs":[{"id":9,"product":"P"},{"id":10,"product":"P"}]}`, []string{"GET /rest/bug/al?ids=b&include_fields=id,product,component"}, true},
		{"7", `"ids":["a/b"],`, `{"bugs":[{"id":7,"product":"P"}]}`,
			[]string{`{"method":"Bug.get","params":[{"ids":["a/b"],"include_fields":["id","product","component"]}],"id":1}`}, false},
	} {
		client, asked := creating(t, "bugzilla-5", c.bugs)
		reply, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: new(decodedCreate(t, c.path, c.ids))})
		if err != nil || reply.PathWon != c.won {
			t.Errorf("path %s with %s: %v, the path won: %v", c.path, c.ids, err, err == nil && reply.PathWon)
		}
		if n := len(*asked); n == 0 || !slices.Equal((*asked)[:n-1], c.want) {
			t.Errorf("path %s with %s: asked %q, want %q and the create", c.path, c.ids, *asked, c.want)
		}
	}
}

// TestNothingIsCreatedInDoubt: an answer that leaves out a bug, or has none, tells nothing.
func TestNothingIsCreatedInDoubt(t *testing.T) {
	for _, bugs := range []string{`{"bugs":[]}`, `{"bugs":[{"id":8,"product":"P"}]}`, `{"bugs":[{},{"id":8,"product":"P"}]}`, `{"bugs":[{"id":7},{"id":8,"product":"P"}]}`, `{}`, `<html>`} {
		client, asked := creating(t, "bugzilla-5", bugs)
		_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: new(decodedCreate(t, "7", `"ids":["al","b"],`))})
		checkError(t, err, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false)
		if len(*asked) != 1 {
			t.Errorf("%s: asked %q", bugs, *asked)
		}
	}
	client, asked := creating(t, "bmo", `{}`)
	_, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: new(decodedCreate(t, "7", `"ids":[".."],`))})
	checkError(t, err, mapping.CodeBadParameter, 400, mapping.ReasonInexpressive, false)
	if len(*asked) != 0 {
		t.Errorf("asked %q", *asked)
	}
}

func decodedCreate(t *testing.T, path, ids string) mapping.AttachmentCreate {
	t.Helper()
	members, err := mapping.ParseMembers([]byte(`{` + ids + `"data":"YQ==","file_name":"f","summary":"s","is_patch":true}`))
	must(t, err)
	request, err := mapping.DecodeAttachmentCreate(path, members, nil)
	must(t, err)
	t.Cleanup(func() { _ = request.Data.Close() })
	return request
}
