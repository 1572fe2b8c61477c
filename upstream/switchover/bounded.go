package switchover

import "container/list"

// bounded is a map that holds at most so many entries, of which those give way
// that were used longest ago. It is not safe for concurrent use.
type bounded[K comparable, V any] struct {
	most    int
	entries map[K]*list.Element
	order   list.List // of *boundedEntry, the last used one first
}

type boundedEntry[K comparable, V any] struct {
	key   K
	value V
}

func newBounded[K comparable, V any](most int) *bounded[K, V] {
	return &bounded[K, V]{most: most, entries: map[K]*list.Element{}}
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
	if element, ok := b.entries[key]; ok {
		element.Value.(*boundedEntry[K, V]).value = value
		b.order.MoveToFront(element)
		return
	}
	b.entries[key] = b.order.PushFront(&boundedEntry[K, V]{key, value})
	for len(b.entries) > b.most {
		b.dropOldest()
	}
}

// dropOldest gives what it dropped.
func (b *bounded[K, V]) dropOldest() (value V, ok bool) {
	element := b.order.Back()
	if element == nil {
		return value, false
	}
	entry := b.order.Remove(element).(*boundedEntry[K, V])
	delete(b.entries, entry.key)
	return entry.value, true
}

func (b *bounded[K, V]) drop(key K) {
	if element, ok := b.entries[key]; ok {
		b.order.Remove(element)
		delete(b.entries, key)
	}
}
