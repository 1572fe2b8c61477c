package upstream_test

import (
	"context"
	"testing"

	"portico/upstream"
)

// TestOutlive: what goes on after its client has hung up ends with the server of the client.
func TestOutlive(t *testing.T) {
	server, endServer := context.WithCancel(t.Context())
	request, hangUp := context.WithCancel(upstream.WithServer(server, nil))
	outliving, end := upstream.Outlive(request)
	defer end()
	if hangUp(); outliving.Err() != nil {
		t.Error("it ended with its client")
	}
	endServer()
	<-outliving.Done()
}
