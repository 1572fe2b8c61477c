package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

func TestErrorsAreNotRemembered(t *testing.T) {
	for _, err := range []*mapping.Error{errBadKey, errNoProduct, errRefused} {
		f := &fakeTracker{}
		f.scripted(always(err))
		c := openCache(t, f, Options{LocalTTL: time.Minute})
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

func TestNoSuchComponentIsRememberedBriefly(t *testing.T) {
	request := mapping.FlagTypesRequest{Product: "P", Component: "None"}
	ageing(t, stalest, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
		f.scripted(always(errNoComponent))
		for i := range 3 {
			a := askFor(context.Background(), c, withKey("k"), request)
			wantCode(t, a.err, 51)
			if a.cache.Hit != (i > 0) || a.cache.Stale {
				t.Errorf("the error says %+v", a.cache)
			}
			a.err.(*mapping.Error).Message = "changed by whoever got it"
		}
		wantCalls(t, f, 1)
		var e *mapping.Error
		errors.As(askFor(context.Background(), c, withKey("k"), request).err, &e)
		if e.Message != errNoComponent.Message || e.Status != 404 || !e.FromTracker() {
			t.Errorf("the remembered error is %+v", e)
		}
		clock.forward(5 * time.Second)
		f.scripted(nil)
		if a := askFor(context.Background(), c, withKey("k"), request); a.err != nil {
			t.Error("after its time: ", a.err)
		}
	})
}

func TestNoSuchProductIsNotRememberedByCode51(t *testing.T) {
	f := &fakeTracker{}
	f.scripted(always(errNoComponent))
	c := openCache(t, f, Options{})
	ask(c, withKey("k"))
	ask(c, withKey("k"))
	wantCalls(t, f, 2)
}

// What is remembered has no place for members that only this tracker knows.
func TestAnErrorWithMoreMembersIsNotRemembered(t *testing.T) {
	f := &fakeTracker{}
	failed := *errNoComponent
	failed.Extra = mapping.Members{{Name: "extra", Value: []byte("5")}}
	f.scripted(always(&failed))
	c := openCache(t, f, Options{})
	for range 2 {
		a := askFor(t.Context(), c, withKey("k"), mapping.FlagTypesRequest{Product: "P", Component: "None"})
		wantCode(t, a.err, 51)
		if e, ok := errors.AsType[*mapping.Error](a.err); !ok || len(e.Extra) != 1 {
			t.Errorf("got %+v", a.err)
		}
	}
	wantCalls(t, f, 2)
}

func TestWhatIsNoAnswerIsNotKept(t *testing.T) {
	for name, text := range map[string]string{"html": "<html>", "empty": "", "array": "[]", "cut": `{"bug":[`} {
		f := &textTracker{text: text}
		c := openCache(t, f, Options{LocalTTL: time.Minute})
		for range 2 {
			if a := ask(c, withKey("k")); a.err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if f.calls != 2 {
			t.Errorf("%s: the tracker was asked %d times", name, f.calls)
		}
	}
}

type textTracker struct {
	upstream.Tracker
	text  string
	calls int
}

func (f *textTracker) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	f.calls++
	return mapping.FlagTypes{Document: mapping.NewDocument([]byte(f.text))}, nil
}

func TestAnswersWithCookiesAreNotKept(t *testing.T) {
	f := &fakeTracker{cookies: []string{"session=1"}}
	c := openCache(t, f, Options{LocalTTL: time.Minute})
	for range 2 {
		reply, err := c.FlagTypes(context.Background(), withKey("k"), mapping.FlagTypesRequest{Product: "P"})
		if err != nil || len(reply.Cookies) != 1 || reply.Cache.Stored {
			t.Errorf("cookies %v, %+v, %v", reply.Cookies, reply.Cache, err)
		}
	}
	wantCalls(t, f, 2)
}

func TestAnswersDoNotDependOnEachOther(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{LocalTTL: time.Minute})
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			reply, err := c.FlagTypes(context.Background(), withKey("k"), mapping.FlagTypesRequest{Product: "P"})
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
