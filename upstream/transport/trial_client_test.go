package transport

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// TestTrialOfASlowClient: that a tracker has not answered what it has not got yet is none of its failures, and others may
// try instead.
func TestTrialOfASlowClient(t *testing.T) {
	m, o := newMoody(t, "500"), isolated()
	o.TrialTimeout = time.Second
	b := newBreakers(t, o)
	for range 10 {
		_, _, _ = do(b, post(t, m.url))
	}
	eventually(t, "a trial is due", func() bool { return b.Writes.State() == HalfOpen })
	m.mood.Store("ok")
	body, client := io.Pipe()
	slow := request(t, t.Context(), http.MethodPost, m.url, "x")
	slow.Body, slow.ContentLength, slow.GetBody = body, 9, nil
	done := make(chan error, 1)
	go func() {
		_, _, err := do(b, slow)
		done <- err
	}()
	_, _ = io.WriteString(client, "a") // it is on its way, and so it is the trial
	eventually(t, "another write may try", func() bool { _, _, err := do(b, post(t, m.url)); return err == nil })
	if s := b.Writes.Status(); s.State != Closed || s.Opens != 1 || s.Reason != ServerError {
		t.Errorf("%+v", s)
	}
	_, _ = io.WriteString(client, "bcdefghi")
	_ = client.Close()
	if err := <-done; err != nil {
		t.Errorf("the slow client's own: %v", err)
	}
}
