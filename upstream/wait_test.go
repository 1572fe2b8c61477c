package upstream_test

import (
	"context"
	"testing"

	"portico/upstream"
)

// TestOutlive: what goes on after its client has hung up ends with the server of the client, and with a life that is given.
func TestOutlive(t *testing.T) {
	for name, ends := range map[string]int{"the server": 0, "the life": 1} {
		t.Run(name, func(t *testing.T) {
			server, endServer := context.WithCancel(t.Context())
			life, endLife := context.WithCancel(t.Context())
			request, hangUp := context.WithCancel(upstream.WithServer(server))
			outliving, end := upstream.Outlive(request, life)
			defer end()
			if hangUp(); outliving.Err() != nil {
				t.Error("it ended with its client")
			}
			[...]func(){endServer, endLife}[ends]()
			<-outliving.Done()
		})
	}
}
