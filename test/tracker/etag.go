package tracker

import (
	"bufio"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
)

// etag is the entity tag of a result: MD5 over the result in the serialisation that the real server uses, plus the content
// type (tracker-behaviour.md section 1, ETag). The recorded tags come out the same, so recorded If-None-Match requests can be replayed literally.
func etag(result any, contentType string) string {
	sum := md5.New()
	f := &frozen{w: bufio.NewWriter(sum), shared: map[bool]uint32{}}
	f.raw("\x04\x0b\x0812345678\x04\x08\x08\x08")
	f.referent(result)
	f.raw(contentType)
	_ = f.w.Flush()
	return base64.RawStdEncoding.EncodeToString(sum.Sum(nil))
}

// Markers of the serialisation.
const (
	sxObject = iota
	sxLongScalar
	sxArray
	sxHash
	sxRef
	sxUndef
	sxInteger
	_
	sxByte
	sxScalar       = 10
	sxBless        = 17
	sxIndexBless   = 18
	sxOverload     = 20
	sxUTF8         = 23
	sxLongUTF8     = 24
	booleanClass   = "JSON::PP::Boolean"
	shortTextLimit = 255
)

type frozen struct {
	w      *bufio.Writer
	tag    uint32
	shared map[bool]uint32
}

func (f *frozen) raw(s string) { _, _ = f.w.WriteString(s) }

func (f *frozen) mark(m int) { _ = f.w.WriteByte(byte(m)) }

func (f *frozen) length(n int) {
	f.raw(string(binary.LittleEndian.AppendUint32(nil, uint32(n))))
}

// referent writes an object or an array without the reference to it.
func (f *frozen) referent(v any) {
	f.tag++
	switch v := v.(type) {
	case object:
		f.mark(sxHash)
		f.length(len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f.value(v[k])
			f.length(len(k))
			f.raw(k)
		}
	case []any:
		f.mark(sxArray)
		f.length(len(v))
		for _, e := range v {
			f.value(e)
		}
	}
}

func (f *frozen) value(v any) {
	f.tag++
	switch v := v.(type) {
	case bool:
		f.boolean(v)
	case int:
		f.integer(v)
	case string:
		f.text(v)
	case object, []any:
		f.mark(sxRef)
		f.referent(v)
	default:
		f.mark(sxUndef)
	}
}

// boolean writes true and false, which are one shared object each.
func (f *frozen) boolean(v bool) {
	f.mark(sxOverload)
	if tag, seen := f.shared[v]; seen {
		f.mark(sxObject)
		f.raw(string(binary.BigEndian.AppendUint32(nil, tag)))
		return
	}
	first := len(f.shared) == 0
	f.shared[v] = f.tag
	f.tag++
	if first {
		f.mark(sxBless)
		f.mark(len(booleanClass))
		f.raw(booleanClass)
	} else {
		f.mark(sxIndexBless)
		f.mark(0)
	}
	f.mark(sxByte)
	f.mark(128 + digit(v))
}

func (f *frozen) integer(n int) {
	if n >= -128 && n <= 127 {
		f.mark(sxByte)
		f.mark(n + 128)
		return
	}
	f.mark(sxInteger)
	f.raw(string(binary.LittleEndian.AppendUint64(nil, uint64(n))))
}

// text writes a string; what is not ASCII is read byte by byte as ISO 8859-1 first, as the real server does here.
func (f *frozen) text(s string) {
	short, long := sxScalar, sxLongScalar
	for i := range len(s) {
		if s[i] >= 0x80 {
			s, short, long = latin1(s), sxUTF8, sxLongUTF8
			break
		}
	}
	if len(s) <= shortTextLimit {
		f.mark(short)
		f.mark(len(s))
	} else {
		f.mark(long)
		f.length(len(s))
	}
	f.raw(s)
}
