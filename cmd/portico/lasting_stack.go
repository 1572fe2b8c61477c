package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"sync"

	"portico/upstream/transport"
)

// watchers are those of a house who are told what becomes of calls. A house that is being built and one that ends are told as well:
// which of them clients go on with is not decided yet.
type watchers struct {
	observer transport.Observer
	trace    transport.Trace // nil = nobody follows
	changed  func(transport.Change)
}

// lastingStack are connections to a tracker and what guards them. A reload that changes nothing about them keeps them: a breaker that
// is open stays open, and what is under way goes on to count for the limit.
type lastingStack struct {
	*transport.Stack
	key string

	mu    sync.Mutex
	users []*watchers // of the houses that use it, the latest last
}

// all are those of every house, the latest last. Nobody changes what it gives.
func (s *lastingStack) all() []*watchers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}

// Observe implements transport.Observer.
func (s *lastingStack) Observe(sample transport.Sample) {
	for _, each := range s.all() {
		if each.observer != nil {
			each.observer.Observe(sample)
		}
	}
}

// follow asks the latest house alone: a call has one trace.
func (s *lastingStack) follow(req *http.Request) (*http.Request, transport.Observer) {
	users := s.all()
	if len(users) == 0 || users[len(users)-1].trace == nil {
		return req, nil
	}
	return users[len(users)-1].trace(req)
}

func (s *lastingStack) changed(change transport.Change) {
	for _, each := range s.all() {
		if each.changed != nil {
			each.changed(change)
		}
	}
}

// stack gives the connections that another house has already, or makes them. Options say nothing of who is told, but for changes
// of a breaker, which each house is told and one log. Whoever gets it calls leave at the end.
func (l *lasting) stack(key string, options transport.Options, who watchers) (_ *lastingStack, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.stacks[key]
	if held == nil {
		held = &lastingStack{key: key}
		options.Observer, options.Break.OnChange = held, changing(held.changed, options.Break.OnChange)
		if who.trace != nil {
			options.Trace = held.follow
		}
		if held.Stack, err = transport.Chain(nil, options); err != nil {
			return nil, nil, err
		}
		l.stacks[key] = held
	}
	user := &who
	held.mu.Lock()
	defer held.mu.Unlock()
	held.users = append(held.users, user)
	return held, func() { l.leaveStack(held, user) }, nil
}

// changing tells several, of whom the second may be nobody.
func changing(one, other func(transport.Change)) func(transport.Change) {
	if other == nil {
		return one
	}
	return func(change transport.Change) {
		one(change)
		other(change)
	}
}

// leaveStack takes a house out; the last one closes the connections.
func (l *lasting) leaveStack(held *lastingStack, user *watchers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !held.without(user) {
		return
	}
	delete(l.stacks, held.key)
	held.Close()
}

// without takes a user out and tells whether it was the last.
func (s *lastingStack) without(user *watchers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.users {
		if other == user {
			s.users = append(s.users[:i:i], s.users[i+1:]...)
			break
		}
	}
	return len(s.users) == 0
}

// stackKey is the same for connections that are alike: where they go, with which certificates, within which bounds.
func stackKey(label, base string, secured TLSConfig, options transport.Options, traced bool) string {
	digest := sha256.New()
	for _, file := range []string{secured.CAFile, secured.CertFile, secured.KeyFile} {
		if file == "" {
			continue
		}
		text, _ := os.ReadFile(file) // it was read a moment ago; a mistake there is told by those who need it
		fmt.Fprintf(digest, "%d %s", len(text), text)
	}
	return fmt.Sprint(label, base, options.Base, options.Limit, options.Retry, traced, digest.Sum(nil))
}
