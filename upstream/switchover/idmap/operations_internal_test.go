package idmap

import (
	"testing"

	"portico/mapping"
)

// TestEveryReplyHasAShape: the ids in the reply of an operation without a shape would pass untranslated.
func TestEveryReplyHasAShape(t *testing.T) {
	for _, operation := range mapping.Operations() {
		if shapes[operation] == nil {
			t.Errorf("%s has no shape", operation)
		}
	}
}
