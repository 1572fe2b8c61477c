package proxy

import (
	"net/http/httptest"
	"strings"
	"testing"

	"portico/mapping"
)

// Every operation is routed by its method and path, and carried out.
func TestEveryOperationIsServed(t *testing.T) {
	for _, op := range mapping.Operations() {
		path := "/rest" + strings.NewReplacer("{", "", "}", "").Replace(op.Path())
		rc := (&Server{router: routes()}).newContext(httptest.NewRecorder(), httptest.NewRequest(op.Method(), path, nil))
		rc.path = path
		if got := rc.match()[op.Method()]; got != op {
			t.Errorf("%s %s is %q", op.Method(), path, got)
		}
		call, _, _ := rc.decode(op, "1", nil)
		if method, _ := call.Line(); method != op.Method() {
			t.Errorf("%s is not decoded", op)
		}
	}
}
