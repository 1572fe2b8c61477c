package bugzilla

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// hung is a client of a tracker that keeps the question for its version until let is closed, after telling asked of it.
func hung(t *testing.T) (client *Client, asked chan struct{}, let chan struct{}, questions *atomic.Int64) {
	t.Helper()
	asked, let, questions = make(chan struct{}, 100), make(chan struct{}), &atomic.Int64{}
	client = dial(t, "auto", func(w http.ResponseWriter, r *http.Request) {
		questions.Add(1)
		asked <- struct{}{}
		select {
		case <-let:
			_, _ = io.WriteString(w, `{"version":"20240101.1"}`)
		case <-r.Context().Done():
		}
	})
	return client, asked, let, questions
}

// TestNobodyWaitsForTheOneWhoAsks longer than they want to; a status page does not want to at all.
func TestNobodyWaitsForTheOneWhoAsks(t *testing.T) {
	client, asked, let, questions := hung(t)
	first := make(chan string, 1)
	go func() { first <- client.Dialect(t.Context()).Name }()
	<-asked
	told := make(chan bool, 2)
	go func() { _, _, certain := client.Pinned(); told <- certain }()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { told <- client.Dialect(ended).Name == "bmo" }()
	for range 2 {
		select {
		case known := <-told:
			if known {
				t.Error("nobody can know that")
			}
		case <-time.After(4 * time.Second): // the question itself ends after 5 s
			t.Fatal("waited for the one who asks")
		}
	}
	patient := make(chan string, 1)
	go func() { patient <- client.Dialect(t.Context()).Name }()
	close(let)
	if a, b := <-first, <-patient; a != "bmo" || b != "bmo" || questions.Load() != 1 {
		t.Errorf("%s and %s after %d questions", a, b, questions.Load())
	}
}

// TestOneWhoAsksMayGoAway: another caller asks then, and at once.
func TestOneWhoAsksMayGoAway(t *testing.T) {
	client, asked, let, questions := hung(t)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan string, 1), make(chan string, 1)
	go func() { first <- client.Dialect(ctx).Name }()
	<-asked
	go func() { second <- client.Dialect(t.Context()).Name }()
	cancel()
	if name := <-first; name != "bugzilla-5" {
		t.Errorf("the one who went away got %s", name)
	}
	<-asked
	close(let)
	if name := <-second; name != "bmo" || questions.Load() != 2 {
		t.Errorf("the other got %s after %d questions", name, questions.Load())
	}
}

// TestIsHealthy: a page with the status of a success is that of a gateway.
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
		if got := IsHealthy(each.status, []byte(each.head)); got != each.well {
			t.Errorf("%d %s: %v", each.status, each.head, got)
		}
	}
}
