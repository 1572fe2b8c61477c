package cache

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"time"

	"portico/mapping"
)

// entry is one answer of the tracker and what has to be known to give it again.
// It never changes once made.
type entry struct {
	// stamp is the generation under which the tracker was asked.
	stamp string
	// plain is the key in clear, without any credential.
	plain string
	// filled is when the tracker was asked.
	filled time.Time
	// soft is how long after filled the answer is fresh.
	soft time.Duration
	// brief says that a write may have been carried out since, whose outcome was
	// unknown when the tracker was asked.
	brief bool
	// took is how long the tracker needed.
	took time.Duration
	etag string
	text []byte
	// refusal is "no such component", which has no text.
	refusal *mapping.Error
}

// briefLife is how long an answer is fresh while a write may still be carried out:
// long enough to keep a crowd from the tracker.
const briefLife = time.Second

// freshness is what an answer is good for.
type freshness int

const (
	fresh freshness = iota
	// revalidating: may be given while a new one is fetched.
	revalidating
	// emergency: may be given while the tracker is sick.
	emergency
	dead
)

// state tells what the entry is good for now.
func (e *entry) state(now time.Time, o *Options) freshness {
	over := e.age(now) - e.soft
	switch {
	case over < 0:
		return fresh
	case e.refusal != nil:
		return dead
	case over < o.StaleWhileRevalidate && !e.brief:
		return revalidating
	case over < o.StaleIfError:
		return emergency
	}
	return dead
}

// age is never negative, whatever the clocks of two machines say.
func (e *entry) age(now time.Time) time.Duration { return max(0, now.Sub(e.filled)) }

// early decides at random whether to refresh a fresh entry before its time, the
// likelier the nearer its end and the longer the tracker needs, so that of many
// readers one comes first (XFetch: Vattani, Chierichetti, Lowenstein, Optimal
// Probabilistic Cache Stampede Prevention, 2015).
func (e *entry) early(now time.Time) bool {
	left := e.soft - e.age(now)
	if left > 20*e.took || e.refusal != nil {
		return false // the chance is below one in e^20
	}
	return time.Duration(float64(e.took)*-math.Log(1-rand.Float64())) >= left
}

// patience is how long a read waits for the tracker when it has an old answer to
// fall back on: three times what the tracker needed last time.
func (e *entry) patience() time.Duration {
	return min(max(3*e.took, 200*time.Millisecond), 2*time.Second)
}

// refreshTimeout is how long the tracker may take for a new answer while this one
// is given: less than where a client waits, so that a call that hangs does not
// keep the next one from finding a tracker that is well again.
func (e *entry) refreshTimeout(longest time.Duration) time.Duration {
	return min(max(4*e.took, 5*time.Second), longest)
}

// formatMark begins every value in Redis.
const formatMark = "PF2"

var errFormat = errors.New("a value in redis is not in the format of this version")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode makes the value for Redis: texts with their lengths, and a checksum.
func (e *entry) encode() []byte {
	refusal := e.refusal
	if refusal == nil {
		refusal = &mapping.Error{}
	}
	brief := int64(0)
	if e.brief {
		brief = 1
	}
	out := make([]byte, 0, len(e.text)+len(e.plain)+256)
	out = append(out, formatMark...)
	for _, text := range []string{e.stamp, e.plain, e.etag, refusal.Message, refusal.Documentation} {
		out = appendPart(out, text)
	}
	for _, n := range []int64{
		e.filled.UnixMilli(), int64(e.soft), int64(e.took), brief, int64(refusal.Code), int64(refusal.Status),
	} {
		out = binary.AppendUvarint(out, uint64(n))
	}
	out = append(binary.AppendUvarint(out, uint64(len(e.text))), e.text...)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

// decodeEntry reads a value from Redis.
func decodeEntry(value string) (*entry, error) {
	body := len(value) - 4
	if body < len(formatMark) || value[:len(formatMark)] != formatMark {
		return nil, errFormat
	}
	in := reader{left: []byte(value)}
	sum := binary.LittleEndian.Uint32(in.left[body:])
	if crc32.Checksum(in.left[:body], castagnoli) != sum {
		return nil, errFormat
	}
	in.left = in.left[len(formatMark):body]
	e, refusal := &entry{}, &mapping.Error{}
	for _, field := range []*string{&e.stamp, &e.plain, &e.etag, &refusal.Message, &refusal.Documentation} {
		*field = string(in.part())
	}
	e.filled = time.UnixMilli(int64(in.number()))
	e.soft, e.took = time.Duration(in.number()), time.Duration(in.number())
	e.brief = in.number() == 1
	refusal.Code, refusal.Status = int(in.number()), int(in.number())
	e.text = in.part()
	if in.bad || len(in.left) > 0 {
		return nil, errFormat
	}
	if refusal.Code == 0 {
		return e, nil
	}
	// Whoever can write to Redis must not be able to make an answer that HTTP has no form for.
	if refusal.Status < 400 || refusal.Status > 599 {
		return nil, errFormat
	}
	e.refusal, e.text = refusal, nil
	return e, nil
}

// reader takes what encode wrote off the front.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.left)
	if size <= 0 {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[size:]
	return n
}

func (r *reader) part() []byte {
	n := r.number()
	if n > uint64(len(r.left)) {
		r.bad, r.left = true, nil
		return nil
	}
	text := r.left[:n:n]
	r.left = r.left[n:]
	return text
}
