package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// book holds what clients asked for and were told.
type book struct {
	mu      sync.Mutex
	writes  map[string]*write
	count   map[verdict]int
	wrong   []string
	slowest time.Duration
}

// write is one request that changes something, found again everywhere by its id.
type write struct {
	id, op string
	said   verdict
	// made are the ids in the answer to a create.
	made []int
}

func newBook() *book { return &book{writes: map[string]*write{}, count: map[verdict]int{}} }

// begin notes a write before it is sent.
func (b *book) begin(w *write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes[w.id] = w
}

// end notes what a client was told.
func (b *book) end(w *write, said verdict, made []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.said, w.made = said, made
}

func (b *book) answered(v verdict, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[v]++
	b.slowest = max(b.slowest, took)
}

// violation notes something that must not be.
func (b *book) violation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// entry is a line of the tracker's journal.
type entry struct {
	Op        string `json:"op"`
	RequestID string `json:"request_id"`
	IDs       []int  `json:"ids"`
}

// compare holds every write of a client against the journal, and every entry of the journal against the clients.
func (b *book) compare(journal []entry) {
	done := map[string][]entry{}
	for _, e := range journal {
		done[e.RequestID] = append(done[e.RequestID], e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, entries := range done {
		if w := b.writes[id]; w == nil || w.op != entries[0].Op {
			b.wrong = append(b.wrong, fmt.Sprintf("no client asked for this: %s %q", entries[0].Op, id))
		}
		if len(entries) > 1 {
			b.wrong = append(b.wrong, fmt.Sprintf("twice: %s %s was executed %d times", entries[0].Op, id, len(entries)))
		}
	}
	for id, w := range b.writes {
		entries := done[id]
		switch {
		case w.said == ok && len(entries) == 0:
			b.wrong = append(b.wrong, fmt.Sprintf("missing: %s %s was acknowledged and not executed", w.op, id))
		case w.said == refused && len(entries) > 0:
			b.wrong = append(b.wrong, fmt.Sprintf("false failure: %s %s was refused and executed", w.op, id))
		case w.said == ok && w.made != nil && !slices.Equal(w.made, entries[0].IDs):
			b.wrong = append(b.wrong, fmt.Sprintf("false answer: %s %s made %v, and the client was told %v", w.op, id, entries[0].IDs, w.made))
		}
	}
}

// register is one value in the tracker that a single client changes, so that every reading of it can be judged.
type register struct {
	mu sync.Mutex
	// id is that of the flag type or attachment.
	id    int
	acked int
	said  []verdict // by number
}

// next begins a change.
func (r *register) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, pending)
	return len(r.said) - 1
}

func (r *register) end(n int, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[n] = v; v == ok {
		r.acked = n
	}
}

// floor is the last acknowledged change: a reading that begins now must not show an older one.
func (r *register) floor() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acked
}

// judge tells what is wrong with a value that was read, empty if nothing. With late, a write whose outcome was unknown
// may have taken effect long after its client was told so.
func (r *register) judge(value string, floor int, late bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(value, valueFormat, &n); err != nil || n >= len(r.said) {
		return fmt.Sprintf("wrong: %d holds %q, which no client wrote", r.id, value)
	}
	switch {
	case r.said[n] == refused:
		return fmt.Sprintf("false failure: %d shows change %d, which was refused", r.id, n)
	case n < floor && !(late && r.said[n] != ok):
		return fmt.Sprintf("stale: %d shows change %d (%s) after %d was acknowledged", r.id, n, r.said[n], floor)
	}
	return ""
}

// valueFormat is the description or summary that a register's change n writes.
const valueFormat = "change %d of this value"

// summary joins violations of a kind for people: the first of each class.
func (b *book) summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]int{}
	var lines []string
	for _, w := range b.wrong {
		class, _, _ := strings.Cut(w, ":")
		if seen[class]++; seen[class] <= 3 {
			lines = append(lines, "  "+w)
		}
	}
	for class, n := range seen {
		if n > 3 {
			lines = append(lines, fmt.Sprintf("  %s: %d in all", class, n))
		}
	}
	return strings.Join(lines, "\n")
}
