package canary_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestManyDifferencesInOneObject have samples for a few of them only.
func TestManyDifferencesInOneObject(t *testing.T) {
	members := func(name string) func(http.Handler) http.Handler {
		var list strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&list, `"%s%d":%d,`, name, i, i)
		}
		return rewriting(func(int64, *http.Request, []byte) []byte {
			return []byte(`{"attachment":[],"bug":[{` + list.String() + `"id":1,"name":"a","type":"bug"}]}`)
		})
	}
	w := newWorld(t, worldOptions{aroundOld: members("a"), around: members("b")})
	w.make(flagTypes("TestProduct"))
	w.settle()
	if sum := w.sum(""); sum.Confirmed != 1 {
		t.Errorf("got %+v, want one mismatch", sum)
	}
	list, err := w.store.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sampled := 0
	for _, f := range list {
		sampled += f.Samples
	}
	if len(list) < 100 || sampled == 0 || sampled > 200 {
		t.Errorf("%d findings with %d samples", len(list), sampled)
	}
}
