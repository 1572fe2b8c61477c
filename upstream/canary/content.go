package canary

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
)

// contentSum makes a Payload of the inside of a JSON string that comes in pieces,
// as mapping.Split does of one that it has as a whole.
type contentSum struct {
	raw, decoded  hash.Hash
	length, size  int64
	escape, group []byte // those that are not complete yet
	padded, text  bool
	// broken is the first byte that no JSON string has.
	broken []byte
	buffer []byte
}

func newContentSum() *contentSum {
	return &contentSum{raw: sha256.New(), decoded: sha256.New()}
}

// write takes a piece, with escapes as they are written.
func (c *contentSum) write(p []byte) {
	c.length += int64(len(p))
	c.raw.Write(p) // a hash never fails
	if i := bytes.IndexFunc(p, func(r rune) bool { return r < ' ' }); i >= 0 && c.broken == nil {
		c.broken, c.text = []byte{p[i]}, true
	}
	for len(p) > 0 && !c.text {
		if len(c.escape) > 0 || p[0] == '\\' {
			c.escape = append(c.escape, p[0])
			p = p[1:]
			c.unescape()
			continue
		}
		n := plainLen(p)
		c.decode(p[:n])
		p = p[n:]
	}
}

// unescape takes an escape once it is complete. Base64 has no other character that
// is written as one than those below.
func (c *contentSum) unescape() {
	switch e := string(c.escape); {
	case len(e) < 2 || e[1] == 'u' && len(e) < 6:
		return
	case e == `\/`:
		c.decode([]byte("/"))
	case e[1] == 'u':
		code, err := strconv.ParseUint(e[2:], 16, 16)
		if err != nil || code <= ' ' || code > '~' {
			c.text = true
			break
		}
		c.decode([]byte{byte(code)})
	default:
		c.text = true
	}
	c.escape = c.escape[:0]
}

// decode takes characters of base64, in groups of four.
func (c *contentSum) decode(p []byte) {
	c.group = append(c.group, p...)
	whole := len(c.group) / 4 * 4
	if whole == 0 {
		return
	}
	c.buffer = append(c.buffer[:0], make([]byte, base64.StdEncoding.DecodedLen(whole))...)
	n, err := base64.StdEncoding.Strict().Decode(c.buffer, c.group[:whole])
	if err != nil || c.padded {
		c.text = true
		return
	}
	c.padded = n < len(c.buffer)
	c.size += int64(n)
	c.decoded.Write(c.buffer[:n])
	c.group = append(c.group[:0], c.group[whole:]...)
}

// payload is what the pieces make.
func (c *contentSum) payload() Payload {
	if c.text || len(c.group)+len(c.escape) > 0 {
		return Payload{Size: c.length, SHA256: hex.EncodeToString(c.raw.Sum(nil)), Text: true}
	}
	return Payload{Size: c.size, SHA256: hex.EncodeToString(c.decoded.Sum(nil))}
}

// A stamp stands for long content in an answer that is kept: canonical base64 of
// the mark, a byte that tells text, the size and the digest.
const (
	stampMark = "portico:content"
	stampSize = len(stampMark) + 1 + 8 + sha256.Size
)

// stampStart is how stamps begin; the mark has whole groups of three.
var stampStart = []byte(base64.StdEncoding.EncodeToString([]byte(stampMark)))

// stamp writes what stands for a payload.
func (p Payload) stamp() []byte {
	raw := []byte(stampMark + "\x00")
	if p.Text {
		raw[len(stampMark)] = 1
	}
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.Size))
	digest, _ := hex.DecodeString(p.SHA256) // it was written here
	return base64.StdEncoding.AppendEncode(nil, append(raw, digest...))
}

// payloadOfStamp reads what stamp has written, false for anything else.
func payloadOfStamp(raw []byte) (Payload, bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(stampMark))
	if !ok || len(raw) != stampSize {
		return Payload{}, false
	}
	size := int64(binary.BigEndian.Uint64(rest[1:9]))
	return Payload{Size: size, SHA256: hex.EncodeToString(rest[9:]), Text: rest[0] == 1}, true
}
