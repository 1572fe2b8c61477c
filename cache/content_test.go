package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

func TestErrorsAreNotRemembered(t *testing.T) {
	for _, err := range []*mapping.Error{errBadKey, errNoProduct, errNoComponent, errRefused} {
		f := &fakeTracker{}
		f.scripted(always(err))
		c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
		for i := range 6 {
			request := mapping.FlagTypesRequest{Product: "P", Component: []string{"", "C"}[i%2]}
			a := askFor(context.Background(), c, withKey("k"), request)
			wantCode(t, a.err, err.Code)
			if a.cache.Hit || a.cache.Stored {
				t.Errorf("the error says %+v", a.cache)
			}
		}
		wantCalls(t, f, 6)
	}
}

func TestAnswersDoNotDependOnEachOther(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			reply, err := c.Do(context.Background(), withKey("k"), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
			if err != nil {
				t.Error(err)
				return
			}
			reply.Replace([]byte("mine"))
			reply.ETag, reply.Cache.Detail = "mine", "mine"
			reply.Close()
		})
	}
	wait.Wait()
	if a := mustAsk(t, c, withKey("k")); strings.Contains(a.text+a.etag+a.cache.Detail, "mine") {
		t.Errorf("the answer is %s, %+v", a.text, a.cache)
	}
}
