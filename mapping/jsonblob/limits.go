package jsonblob

import (
	"fmt"
	"math"
)

// Limits bounds what one document may cost. For each field zero means the default, and a negative number means no limit.
type Limits struct {
	Body       int64 // bytes of the whole document; default 256 MiB
	Skeleton   int   // bytes that remain when the payloads are taken out; default 16 MiB
	Depth      int   // arrays and objects open at once; default 512, as a tracker refuses deeper ones (tracker-behaviour.md section 1)
	Members    int   // members and array elements together, at all depths; default 262,144
	String     int   // bytes of a member name or of a string that is not a payload, as written; default 1 MiB
	BlobMemory int64 // bytes of all payloads of one document that stay in memory; default 256 KiB, negative: none do
}

const (
	defaultBlobMemory = 256 << 10
	maxNumber         = 256 // bytes
)

// AnswerLimits are those for responses of trackers, which may have as many attachments as a tracker holds, of any size: the limits
// for what clients send do not apply to them. Payloads are in a file beyond blobMemory or, as no budget covers what trackers send, the
// default of BlobMemory, and what remains without them stays bounded.
func AnswerLimits(blobMemory int64) Limits {
	return Limits{Body: -1, Members: -1, BlobMemory: min(blobMemory, defaultBlobMemory)}
}

// WithDefaults replaces zero by the default and a negative number by the largest one, except that BlobMemory, where
// less is stricter, becomes the smallest.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Body:       limitOr(l.Body, 256<<20, math.MaxInt64),
		Skeleton:   limitOr(l.Skeleton, 16<<20, math.MaxInt),
		Depth:      limitOr(l.Depth, 512, math.MaxInt),
		Members:    limitOr(l.Members, 1<<18, math.MaxInt),
		String:     limitOr(l.String, 1<<20, math.MaxInt),
		BlobMemory: limitOr(l.BlobMemory, defaultBlobMemory, -1),
	}
}

func limitOr[T int | int64](n, zero, negative T) T {
	switch {
	case n == 0:
		return zero
	case n < 0:
		return negative
	}
	return n
}

// LimitKind names what a document has too much of.
type LimitKind string

// The kinds of LimitError.
const (
	LimitBody     LimitKind = "body"
	LimitSkeleton LimitKind = "skeleton"
	LimitDepth    LimitKind = "depth"
	LimitMembers  LimitKind = "members"
	LimitString   LimitKind = "string"
	LimitNumber   LimitKind = "number"
)

// limitText says what each kind counts.
var limitText = map[LimitKind]string{
	LimitBody:     "the body is longer than %d bytes",
	LimitSkeleton: "the body is longer than %d bytes without its payloads",
	LimitDepth:    "arrays and objects are nested deeper than %d",
	LimitMembers:  "there are more than %d members and elements",
	LimitString:   "a string is longer than %d bytes",
	LimitNumber:   "a number is longer than %d bytes",
}

// LimitError says that a document is larger, deeper or fuller than the limits allow.
type LimitError struct {
	Kind LimitKind
	Max  int64
}

// Error implements error.
func (e *LimitError) Error() string { return fmt.Sprintf(limitText[e.Kind], e.Max) }
