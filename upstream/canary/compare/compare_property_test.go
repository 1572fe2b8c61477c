package compare

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portico/mapping"
)

func genOperation(t *rapid.T) mapping.Operation {
	return rapid.SampledFrom(append(mapping.Operations(), "")).Draw(t, "operation")
}

func TestADocumentIsLikeItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := genDocument(t, "body")
		if found := Compare(genOperation(t), ok(body), ok(" "+body+"\n"), Rules{}); len(found) > 0 {
			t.Fatalf("%s differs from itself: %s", body, said(found))
		}
	})
}

func TestBothWaysDifferOrNeither(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		operation, one, two := genOperation(t), genDocument(t, "one"), genDocument(t, "two")
		there, back := Compare(operation, ok(one), ok(two), Rules{}), Compare(operation, ok(two), ok(one), Rules{})
		if (len(there) == 0) != (len(back) == 0) {
			t.Fatalf("%s and %s: %q there, %q back", one, two, said(there), said(back))
		}
		if again := Compare(operation, ok(one), ok(two), Rules{}); said(again) != said(there) {
			t.Fatalf("once %q, then %q", said(there), said(again))
		}
	})
}

func TestAnySingleChangeIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := genReply(t)
		if rapid.Bool().Draw(t, "deep") {
			document = genDoc(t, 5)
		}
		operation, before := genOperation(t), document.String()
		document.mutate(t)
		if after := document.String(); len(Compare(operation, ok(before), ok(after), Rules{})) == 0 {
			t.Fatalf("%s: nothing found between %s and %s", operation, before, after)
		}
	})
}

// things are n elements of a list in the given order, with ids from 1.
func things(order []int) string {
	var list []string
	for _, i := range order {
		list = append(list, fmt.Sprintf(`{"id":%d,"name":"n%d","type":"bug","flags":[],"values":["X"]}`, i+1, i%3))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestAPermutationIsOnlyAnOrder(t *testing.T) {
	forms := map[mapping.Operation]struct{ form, path string }{
		mapping.OpFlagTypes:         {`{"bug":%s,"attachment":[]}`, "order $.bug"},
		mapping.OpBugAttachments:    {`{"bugs":{"1":%s},"attachments":{}}`, "order $.bugs[*]"},
		mapping.OpAttachment:        {`{"bugs":{},"attachments":{"1":{"flags":%s}}}`, "order $.attachments[*].flags"},
		mapping.OpUpdateAttachments: {`{"attachments":%s}`, "order $.attachments"},
		mapping.OpUpdateFlagTypes:   {`{"flagtypes":%s}`, ""},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		straight := make([]int, n)
		for i := range straight {
			straight[i] = i
		}
		shuffled := rapid.Permutation(straight).Draw(t, "order")
		for operation, form := range forms {
			want := form.path
			if things(shuffled) == things(straight) {
				want = ""
			}
			one, two := fmt.Sprintf(form.form, things(straight)), fmt.Sprintf(form.form, things(shuffled))
			if got := said(Compare(operation, ok(one), ok(two), Rules{})); got != want {
				t.Fatalf("%s of %v: %q, want %q", operation, shuffled, got, want)
			}
		}
	})
}
