package bugzilla_test

import (
	"testing"

	"portico/upstream/bugzilla"
)

func TestIsHealthy(t *testing.T) {
	for _, each := range []struct {
		status int
		head   string
		well   bool
	}{
		{200, `{"version":"5.2"}`, true},
		{401, `{"error":true,"code":410,"message":"m"}`, true},
		{404, `<html>`, true},
		{200, `<html>down for maintenance`, false},
		{200, ``, false},
		{302, ``, false},
		{500, `{"error":true}`, false},
	} {
		if got := bugzilla.IsHealthy(each.status, []byte(each.head)); got != each.well {
			t.Errorf("%d %s: %v", each.status, each.head, got)
		}
	}
}
