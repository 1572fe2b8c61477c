package journal_test

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/journal"
)

// A caller whose writes the tracker refuses holds the objects of one write at a time, whatever keys it makes up. Others do not wait for it.
func TestRefusedCallersTakeTurns(t *testing.T) {
	s := set(t)
	j := s.start(t)
	refused := upstream.Response{Err: mapping.Refuse(mapping.CodeBadKey, "no such key")}
	refused.Err.(*mapping.Error).Reason = ""
	try := func(address, key string, attachment int64) (journal.Done, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		write := intent(rename(attachment, key))
		write.Shown = upstream.Caller{Address: address, Credentials: upstream.Credentials{APIKey: key}}
		return j.Begin(ctx, write)
	}
	begin := func(address, key string, attachment int64) journal.Done {
		t.Helper()
		done, err := try(address, key, attachment)
		must(t, err)
		return done
	}
	waits := func(address, key string, attachment int64) {
		t.Helper()
		if done, err := try(address, key, attachment); err == nil {
			t.Errorf("%s from %s did not wait", key, address)
			done(t.Context(), refused)
		}
	}
	first := begin("192.0.2.1", "made up", 1)
	waits("192.0.2.1", "made up as well", 2)
	other := begin("192.0.2.2", "accepted", 2)
	waits("192.0.2.2", "not accepted yet", 3)
	other(t.Context(), upstream.Response{Err: journal.Unavailable(nil)}) // neither accepted nor refused
	waits("192.0.2.1", "made up", 3)
	accepted := begin("192.0.2.2", "accepted", 2)
	accepted(t.Context(), rename(2, "x").Make(t.Context(), s.main, s.caller()))
	first(t.Context(), refused)

	one, two := begin("192.0.2.2", "accepted", 2), begin("192.0.2.1", "accepted", 3)
	one(t.Context(), refused)
	two(t.Context(), refused)
	last := begin("192.0.2.2", "accepted", 2)
	waits("192.0.2.2", "accepted", 3)
	last(t.Context(), refused)
}
