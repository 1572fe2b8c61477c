package migration

import (
	"fmt"
	"sync"
	"time"
)

// thing is an object that a client has made: an attachment or a flag type. Its name is its own; its text ends with a version that its owner counts.
type thing struct {
	name string
	bug  int
	// id is the first one that a client was shown.
	id int
	// made says that its creation was acknowledged.
	made bool
	// tried is the last version that was sent, sure the last one that was acknowledged.
	tried, sure int
	// said are the comments that were sent, with whether they were acknowledged. flags are the flags that were sent so, by their types.
	said, flags map[string]bool
}

// asked is a write that a client sent, and how its effect is recognised: by a comment, a flag or the version of an object.
type asked struct {
	begin, end    time.Time
	thing         *thing
	version       int
	comment, kind string
}

// in reports whether a tracker has the effect of a write.
func (a asked) in(c content) bool {
	switch {
	case a.comment != "":
		return c.said[a.comment] > 0
	case a.kind != "":
		return c.flags[a.thing.name+" "+a.kind]
	}
	return c.objects[a.thing.name] != "" && c.versions[a.thing.name] >= a.version
}

// moment is what was acknowledged at a time: the version of each object, by its name.
type moment map[string]int

// book is what clients were told, and what was wrong with it. It is safe for concurrent use.
type book struct {
	mu     sync.Mutex
	things map[string]*thing
	// names are the names of objects by kind and id.
	names map[string]string
	// flags are the ids of flags by attachment and type.
	flags map[string]int
	// floor is what was acknowledged before the last transition that has ended.
	floor moment
	// shared are attachments that all clients change, and sharedSaid what they said in comments of them.
	shared     []int
	sharedSaid map[string]bool
	// asked are the writes of each client.
	asked  map[string][]asked
	faults []string
	counts map[string]int
	// paused keeps clients from beginning anything.
	paused sync.RWMutex
}

func newBook() book {
	return book{things: map[string]*thing{}, names: map[string]string{}, flags: map[string]int{}, counts: map[string]int{}, sharedSaid: map[string]bool{}, asked: map[string][]asked{}}
}

// wrong notes what must not be.
func (b *book) wrong(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (b *book) count(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what]++
}

// change changes what is known of an object, or anything else in the book.
func (b *book) change(t *thing, do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t != nil {
		b.things[t.name] = t
	}
	do()
}

// write makes a write that may have to be recognised.
func (c *client) write(a asked, method, path string, body any) result {
	a.begin = time.Now()
	r := c.inAnyForm(method, path, body)
	a.end = time.Now()
	c.world.book.change(nil, func() { c.world.book.asked[c.name] = append(c.world.book.asked[c.name], a) })
	return r
}

// find returns the write that a client sent at a time.
func (b *book) find(caller string, at time.Time) (found asked, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.asked[caller] {
		if !at.Before(one.begin.Truncate(time.Microsecond)) && at.Before(one.end) {
			return one, true
		}
	}
	return found, false
}

// mark is what is acknowledged now.
func (b *book) mark() moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := moment{}
	for name, t := range b.things {
		if t.made {
			now[name] = t.sure
		}
	}
	return now
}

// moved says that a transition has ended that began at a moment.
func (b *book) moved(floor moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.floor = floor
}

// expected is what a read that begins now has to show: what was acknowledged before the last transition.
func (b *book) expected() moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floor
}

// shows notes that a read has shown an object under an id.
func (b *book) shows(reader, kind, name string, id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, key := b.things[name], fmt.Sprint(kind, " ", id)
	known, seen := b.names[key]
	switch {
	case t == nil: // of the seed
		return
	case t.id == 0:
		t.id = id
	case t.id != id:
		b.faults = append(b.faults, fmt.Sprintf("%s: %s %q was shown under the id %d and then %d", reader, kind, name, t.id, id))
		return
	}
	if seen && known != name {
		b.faults = append(b.faults, fmt.Sprintf("%s: the id %d of a %s means %q and then %q", reader, id, kind, known, name))
	}
	b.names[key] = name
}

// showsFlag notes that a read has shown a flag of an attachment under an id. Of each type an attachment has one at most.
func (b *book) showsFlag(reader, attachment, kind string, id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, owner := attachment+" "+kind, fmt.Sprint("flag ", id)
	if b.things[attachment] == nil {
		return
	}
	if known := b.flags[key]; known != 0 && known != id {
		b.faults = append(b.faults, fmt.Sprintf("%s: the flag %s was shown under the id %d and then %d", reader, key, known, id))
	}
	if other := b.names[owner]; other != "" && other != key {
		b.faults = append(b.faults, fmt.Sprintf("%s: flag %d means %s and then %s", reader, id, other, key))
	}
	b.flags[key], b.names[owner] = id, key
}
