package cache

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"
	"time"
)

// stamp is the state under which the tracker was asked, as Redis held it. The zero value means that Redis could not be used.
type stamp struct {
	// Generation is the generation of the tracker.
	Generation string
	// Product is the generation of the product, empty if it was not purged lately.
	Product string
	// Pending is the sum of the pending writes, empty if there were none.
	Pending string
}

// entry is one response of the tracker. It is immutable. Its exported fields are stored as JSON. state (local.go) says what it is good for.
type entry struct {
	Stamp                     stamp
	Scope, Product, Component string
	// Soft is how long after filled the entry is fresh.
	Soft time.Duration
	// Uncertain says that a write may have changed the flag types since: the entry serves for stale-if-error only.
	Uncertain bool
	ETag      string
	// filled is when the tracker was asked.
	filled time.Time
	text   []byte
}

// asUncertain is the entry after a write that may have changed the flag types.
func (e *entry) asUncertain() *entry {
	changed := *e
	changed.Soft, changed.Uncertain = 0, true
	return &changed
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode makes the value for Redis: the time in milliseconds, the fields and a line feed, the text, and a checksum.
func (e *entry) encode() []byte {
	fields, _ := json.Marshal(e) // texts and numbers always have a form in JSON
	out := binary.AppendUvarint(nil, uint64(e.filled.UnixMilli()))
	out = append(append(append(out, fields...), '\n'), e.text...)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

var errFormat = errors.New("unreadable entry in redis")

// decodeEntry reads a value from Redis.
func decodeEntry(value string) (*entry, error) {
	in := []byte(value)
	end := len(in) - crc32.Size
	if end < 0 || crc32.Checksum(in[:end], castagnoli) != binary.LittleEndian.Uint32(in[end:]) {
		return nil, errFormat
	}
	at, size := binary.Uvarint(in[:end])
	fields, text, _ := bytes.Cut(in[max(size, 0):end], []byte("\n"))
	e := &entry{filled: time.UnixMilli(int64(at)), text: slices.Clip(text)}
	return e, json.Unmarshal(fields, e)
}
