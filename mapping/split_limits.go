package mapping

import (
	"fmt"
	"math"
)

// Limits bounds what one document may cost. For each field zero means the default, and a negative number means no limit.
type Limits struct {
	Body       int64 // bytes of the whole document; default 256 MiB
	Skeleton   int   // bytes that remain when the payloads are taken out; default 16 MiB
	Depth      int   // arrays and objects open at once; default 512, as a tracker refuses deeper ones (wire-facts.md, section 1)
	Members    int   // members and array elements together, at all depths; default 262,144
	String     int   // bytes of a member name or of a string that is not a payload, as written; default 1 MiB
	Number     int   // bytes of a number; default 256
	Blobs      int   // payloads in one document; default 4096
	BlobMemory int64 // bytes of all payloads of one document that stay in memory; default 256 KiB, negative: none do
}

const (
	defaultBody       = 256 << 20
	defaultSkeleton   = 16 << 20
	defaultDepth      = 512
	defaultMembers    = 1 << 18
	defaultString     = 1 << 20
	defaultNumber     = 256
	defaultBlobs      = 4096
	defaultBlobMemory = 256 << 10
)

// AnswerLimits are those for what trackers answer, which may have as many attachments as a tracker holds, of any size: the limits
// for what clients send do not bind them. Payloads lie on disk beyond blobMemory, and what remains without them stays bounded.
func AnswerLimits(blobMemory int64) Limits {
	return Limits{Body: -1, Members: -1, Blobs: -1, BlobMemory: blobMemory}
}

// WithDefaults replaces zero by the default and a negative number by the largest one, except that BlobMemory, where
// less is stricter, becomes the smallest.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Body:       limitOr(l.Body, defaultBody, math.MaxInt64),
		Skeleton:   limitOr(l.Skeleton, defaultSkeleton, math.MaxInt),
		Depth:      limitOr(l.Depth, defaultDepth, math.MaxInt),
		Members:    limitOr(l.Members, defaultMembers, math.MaxInt),
		String:     limitOr(l.String, defaultString, math.MaxInt),
		Number:     limitOr(l.Number, defaultNumber, math.MaxInt),
		Blobs:      limitOr(l.Blobs, defaultBlobs, math.MaxInt),
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

// LimitKind names the field of Limits that a document went beyond.
type LimitKind string

// The kinds of LimitError.
const (
	LimitBody     LimitKind = "body"
	LimitSkeleton LimitKind = "skeleton"
	LimitDepth    LimitKind = "depth"
	LimitMembers  LimitKind = "members"
	LimitString   LimitKind = "string"
	LimitNumber   LimitKind = "number"
	LimitBlobs    LimitKind = "blobs"
)

// limitText says what each kind counts.
var limitText = map[LimitKind]string{
	LimitBody:     "the body is longer than %d bytes",
	LimitSkeleton: "the body is longer than %d bytes without its payloads",
	LimitDepth:    "arrays and objects are nested deeper than %d",
	LimitMembers:  "there are more than %d members and elements",
	LimitString:   "a string is longer than %d bytes",
	LimitNumber:   "a number is longer than %d bytes",
	LimitBlobs:    "there are more than %d payloads",
}

// LimitError says that a document was larger, deeper or fuller than the limits allow.
type LimitError struct {
	Kind   LimitKind
	Max    int64
	Offset int64 // of the byte where it shows
}

// Error implements error.
func (e *LimitError) Error() string { return fmt.Sprintf(limitText[e.Kind], e.Max) }
