package tracker

import (
	"fmt"
	"time"
)

// seed is the data that the server, or the one that it follows, starts with.
func (s *Server) seed() *data {
	if s.options.Follows != nil {
		return s.options.Follows.seed()
	}
	d := seedData(s.options.Seed)
	if s.options.Seed == SeedFixture && s.mojolicious() {
		mojoFixture(d)
	}
	if name := s.options.Product; name != "" {
		id := d.products.last + 1
		d.products.add(id, &product{id: id, name: name, description: "marks this tracker"})
	}
	for n := range s.options.Users {
		id := d.users.last + 1
		d.users.add(id, &user{id: id, login: fmt.Sprintf("user-%d@example.com", n), groups: []int{groupEditBugs}, keys: []apiKey{{text: UserKey(n)}}})
	}
	return d
}

// UserKey is the API key of one of the users that Options.Users adds. It is a test value.
func UserKey(n int) string { return key(fmt.Sprintf("User%dKey", n)) }

// sight is how far back the server's reads look at this moment. A follower that has made a write itself has caught up
// with everything before it.
func (s *Server) sight() sight {
	if !s.has(QuirkLag) {
		return sight{}
	}
	seen := sight{lag: lagTime}
	if at := s.wrote.Load(); at != nil {
		seen.since = *at
	}
	return seen
}

// transact executes an operation in a transaction of the kind that it needs.
func (s *Server) transact(op *operation, do func(*tx) error) error {
	if !op.write {
		return s.store.read(s.sight(), do)
	}
	err := s.store.write(do)
	if err == nil && !op.open && s.options.Follows != nil {
		now := time.Now()
		s.wrote.Store(&now)
	}
	return err
}
