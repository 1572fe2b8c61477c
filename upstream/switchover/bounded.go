package switchover

import "container/list"

// bounded is a map that holds at most so many entries, of at most so much weight
// together. Those give way that were used longest ago. It is not safe for
// concurrent use.
type bounded[K comparable, V any] struct {
	most    int
	entries map[K]*list.Element
	order   list.List // of *boundedEntry, the last used one first
	// weigh is nil where weight does not matter.
	weigh             func(V) int
	weight, mostHeavy int
}

type boundedEntry[K comparable, V any] struct {
	key   K
	value V
}

func newBounded[K comparable, V any](most int) *bounded[K, V] {
	return &bounded[K, V]{most: most, entries: map[K]*list.Element{}}
}

// weighed makes one that is bounded by the weight of its values as well.
func weighed[K comparable, V any](most, mostHeavy int, weigh func(V) int) *bounded[K, V] {
	b := newBounded[K, V](most)
	b.weigh, b.mostHeavy = weigh, mostHeavy
	return b
}

func (b *bounded[K, V]) weightOf(value V) int {
	if b.weigh == nil {
		return 0
	}
	return b.weigh(value)
}

func (b *bounded[K, V]) get(key K) (value V, ok bool) {
	element, ok := b.entries[key]
	if !ok {
		return value, false
	}
	b.order.MoveToFront(element)
	return element.Value.(*boundedEntry[K, V]).value, true
}

func (b *bounded[K, V]) put(key K, value V) {
	b.drop(key)
	b.weight += b.weightOf(value)
	b.entries[key] = b.order.PushFront(&boundedEntry[K, V]{key, value})
	for len(b.entries) > b.most || b.weight > b.mostHeavy {
		b.dropOldest()
	}
}

// dropOldest gives what it dropped.
func (b *bounded[K, V]) dropOldest() (value V, ok bool) {
	element := b.order.Back()
	if element == nil {
		return value, false
	}
	return b.remove(element), true
}

func (b *bounded[K, V]) drop(key K) {
	if element, ok := b.entries[key]; ok {
		b.remove(element)
	}
}

func (b *bounded[K, V]) remove(element *list.Element) V {
	entry := b.order.Remove(element).(*boundedEntry[K, V])
	delete(b.entries, entry.key)
	b.weight -= b.weightOf(entry.value)
	return entry.value
}

// dropWhere drops the entries of which is says so.
func (b *bounded[K, V]) dropWhere(is func(V) bool) {
	for _, element := range b.entries {
		if is(element.Value.(*boundedEntry[K, V]).value) {
			b.remove(element)
		}
	}
}
