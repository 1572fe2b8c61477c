package jsonblob

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

// oracleBase64 says by other means than the code what a payload means: white space is nothing, padding may be missing.
func oracleBase64(text string) ([]byte, bool) {
	text = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text)
	chars := strings.TrimRight(text, "=")
	last, pads := len(chars)%4, len(text)-len(chars)
	if pads > 0 && (last < 2 || last+pads > 4) {
		return nil, false
	}
	content, err := base64.RawStdEncoding.DecodeString(chars)
	return content, err == nil
}

// oracle walks a decoded document. It replaces each payload by its canonical form, and other numbers by the spelling that
// a skeleton has.
type oracle struct {
	exact   bool // tolerant mode: values are not changed
	invalid bool // some payload is not base64
	found   map[[32]byte]int
	depth   int
}

func (o *oracle) walk(v any, depth int) any {
	o.depth = max(o.depth, depth)
	switch v := v.(type) {
	case json.Number:
		return json.Number(strings.Replace(string(v), "-0E", "-0e", 1))
	case []any:
		o.depth = max(o.depth, depth+1)
		for i := range v {
			v[i] = o.walk(v[i], depth+1)
		}
	case map[string]any:
		o.depth = max(o.depth, depth+1)
		for name := range v {
			if text, ok := v[name].(string); ok && name == "data" {
				v[name] = o.payload(text)
			} else {
				v[name] = o.walk(v[name], depth+1)
			}
		}
	}
	return v
}

func (o *oracle) payload(text string) string {
	content, ok := oracleBase64(text)
	canonical := base64.StdEncoding.EncodeToString(content)
	o.invalid = o.invalid || !ok
	if o.exact && (!ok || canonical != text) {
		return text
	}
	o.found[sha256.Sum256(content)]++
	return canonical
}

func decodeAny(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json does not read %q: %v", text, err)
	}
	return v
}

// checkSplit compares one Split with what encoding/json, encoding/base64 and jsontext say of the same text.
func checkSplit(t *testing.T, text []byte, src io.Reader, opts SplitOptions) {
	t.Helper()
	// RFC 7493, by another parser: what Split asks of JSON beyond RFC 8259.
	valid := jsontext.Value(text).IsValid()
	if valid && !json.Valid(text) {
		t.Fatalf("the oracles disagree on %q", text)
	}
	o := oracle{exact: opts.Tolerant, found: map[[32]byte]int{}}
	var want any
	if valid {
		want = o.walk(decodeAny(t, text), 0)
	} else {
		// How deep a text goes that no parser reads to its end, at most.
		o.depth = bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
	}
	skeleton, blobs, err := Split(nil, src, opts)
	defer CloseBlobs(blobs)
	if limit := (*LimitError)(nil); errors.As(err, &limit) {
		if o.depth <= 512 && longestNumber(text) <= 256 {
			t.Fatalf("%q: unexpected %v", text, err)
		}
		return
	}
	var syntax *SyntaxError
	switch {
	case err != nil && !errors.As(err, &syntax):
		t.Fatalf("%q: an error of another type: %v", text, err)
	case err == nil && (!valid || o.invalid && !opts.Tolerant):
		t.Fatalf("%q: accepted", text)
	case err == nil:
		checkBlobs(t, blobs, o.found)
		if got := decodeAny(t, []byte(rejoin(t, skeleton, blobs))); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: joined %v, want %v", text, got, want)
		}
	case valid && syntax.Kind != SyntaxBase64:
		t.Fatalf("%q: refused: %v", text, err)
	case valid && !o.invalid, !valid && syntax.Kind == SyntaxBase64:
		t.Fatalf("%q: wrong kind of refusal: %v", text, err)
	case syntax.Offset < 0 || syntax.Offset > int64(len(text)):
		t.Fatalf("%q: offset %d", text, syntax.Offset)
	}
}

// checkBlobs takes each blob that was found from those that were to be found.
func checkBlobs(t *testing.T, blobs []*Blob, want map[[32]byte]int) {
	t.Helper()
	for _, b := range blobs {
		encoded, err := io.ReadAll(b.Reader())
		must(t, err)
		content, err := base64.StdEncoding.DecodeString(string(encoded))
		if err != nil || int64(len(content)) != b.Size() || sha256.Sum256(content) != digestOf(t, b) {
			t.Fatalf("a blob of %d bytes does not describe %q", b.Size(), encoded)
		}
		want[digestOf(t, b)]--
	}
	for digest, n := range want {
		if n != 0 {
			t.Fatalf("%d payloads with digest %x are missing", n, digest)
		}
	}
}

func longestNumber(text []byte) int {
	longest := 0
	for _, run := range bytes.FieldsFunc(text, func(r rune) bool { return r > 0x7f || !isNumberByte(byte(r)) }) {
		longest = max(longest, len(run))
	}
	return longest
}

func FuzzSplit(f *testing.F) {
	dir := f.TempDir()
	f.Add([]byte(strings.Repeat("[", 600))) // too deep, and no JSON either
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, memory := range []int64{0, -1} {
			opts := SplitOptions{Limits: Limits{BlobMemory: memory}, Dir: dir}
			checkSplit(t, text, bytes.NewReader(text), opts)
			opts.Tolerant = true
			checkSplit(t, text, iotest.OneByteReader(bytes.NewReader(text)), opts)
		}
	})
}

func FuzzBlob(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		content, ok := oracleBase64(string(text))
		b, err := BlobFromEncoded(string(text))
		if ok != (err == nil) {
			t.Fatalf("%q: error %v, but valid: %v", text, err, ok)
		}
		if err != nil {
			if syntax := (*SyntaxError)(nil); !errors.As(err, &syntax) || syntax.Kind != SyntaxBase64 {
				t.Fatalf("%q: an error of another type: %v", text, err)
			}
			return
		}
		defer b.Close()
		checkBlobs(t, []*Blob{b}, map[[32]byte]int{sha256.Sum256(content): 1})
		if same := BlobFromRaw(content); digestOf(t, same) != digestOf(t, b) || same.EncodedLen() != b.EncodedLen() {
			t.Fatalf("%q: BlobFromRaw makes %d characters, not %d", text, same.EncodedLen(), b.EncodedLen())
		}
	})
}

func FuzzJoin(f *testing.F) {
	f.Fuzz(func(t *testing.T, skeleton []byte, count uint8) {
		var blobs []*Blob
		var texts []string
		for i := range int(count) {
			blobs = append(blobs, BlobFromRaw(bytes.Repeat([]byte{byte(i)}, i)))
			texts = append(texts, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i)}, i)))
		}
		joined, err := Join(skeleton, blobs)
		if err != nil {
			return
		}
		var whole bytes.Buffer
		if n, err := joined.WriteTo(&whole); err != nil || n != joined.Len() || int64(whole.Len()) != n {
			t.Fatalf("%q: WriteTo gave %d (%v), Len %d", skeleton, n, err, joined.Len())
		}
		if got := rejoin(t, skeleton, blobs); got != whole.String() {
			t.Fatalf("%q: read %q, but written %q", skeleton, got, whole.String())
		}
		if json.Valid(skeleton) {
			got, want := decodeAny(t, whole.Bytes()), fillIn(decodeAny(t, skeleton), texts)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: joined %v, want %v", skeleton, got, want)
			}
		}
	})
}

// fillIn replaces the placeholders of a decoded skeleton.
func fillIn(v any, texts []string) any {
	switch v := v.(type) {
	case json.Number:
		for i, text := range texts {
			if string(v) == string(AppendPlaceholder(nil, i)) {
				return text
			}
		}
	case []any:
		for i := range v {
			v[i] = fillIn(v[i], texts)
		}
	case map[string]any:
		for name := range v {
			v[name] = fillIn(v[name], texts)
		}
	}
	return v
}
