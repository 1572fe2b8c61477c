package canary_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// withStatus sends all answers with another status.
func withStatus(status int) func(http.Handler) http.Handler {
	return changed(func(said *httptest.ResponseRecorder) { said.Code = status })
}

// changed sends all answers otherwise than the tracker has said them.
func changed(change func(said *httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := httptest.NewRecorder()
			next.ServeHTTP(said, r)
			change(said)
			maps.Copy(w.Header(), said.Header())
			w.WriteHeader(said.Code)
			_, _ = w.Write(said.Body.Bytes())
		})
	}
}

// TestOtherStatus: the status is compared as the tracker sends it, also where Portico's clients get the same for both.
func TestOtherStatus(t *testing.T) {
	for name, test := range map[string]struct {
		status, oldStatus int
		product           string
		found             []string
	}{
		"success": {202, 200, "TestProduct", []string{"flag_type.get status status"}},
		"error":   {200, 404, "NoSuchProduct", []string{"flag_type.get status status"}},
		// Portico's clients get the status that belongs to the code, from both.
		"error with a success": {200, 401, "NoSuchProduct", []string{"flag_type.get status status"}},
		"both success":         {203, 203, "TestProduct", nil},
		"both error":           {200, 200, "NoSuchProduct", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{around: withStatus(test.status), aroundOld: withStatus(test.oldStatus)})
			w.make(flagTypes(test.product))
			if found := w.findings(); !slices.Equal(found, test.found) {
				t.Errorf("found %q, want %q", found, test.found)
			}
			if sum := w.sum(""); sum.Transient > 0 {
				t.Errorf("%d were in passing", sum.Transient)
			}
		})
	}
}

// TestStatusOfACachedAnswer: a cache does not know it, so that it is taken for the usual one until both are asked again.
func TestStatusOfACachedAnswer(t *testing.T) {
	w := newWorld(t, worldOptions{around: withStatus(203), aroundOld: withStatus(203)})
	call := flagTypes("TestProduct")
	said := call.Make(t.Context(), w.client, w.caller)
	if said.Err != nil {
		t.Fatal(said.Err)
	}
	text, err := said.Document.Load(jsonblob.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := upstream.Response{Document: mapping.NewDocument(text), FromCache: true}
	_ = w.canary.Answered(t.Context(), w.caller, call, sides, kept).Close()
	if found := w.findings(); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if sum := w.sum(""); sum.Transient != 1 || sum.Compared != 1 {
		t.Errorf("got %+v, want one difference in passing", sum)
	}
}
