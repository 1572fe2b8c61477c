package jsonblob

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genString is the inside of a JSON string, escapes and all.
func genString(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "data", "ü", "日本", "😀", `\n`, `\"`, `\\`, `\/`, `\u0000`, `\ud83d\ude00`, "-0E+0", " "}), 0, 6)
	return strings.Join(pieces.Draw(t, "string"), "")
}

// genPayload is the inside of a JSON string with base64 in one of the forms that are repaired, long enough now and then to
// reach beyond the window.
func genPayload(t *rapid.T) string {
	size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(20000, 120000)).Draw(t, "size")
	seed := rapid.IntRange(1, 255).Draw(t, "seed")
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i*seed>>2 ^ i>>8)
	}
	text := base64.StdEncoding.EncodeToString(content)
	if rapid.Bool().Draw(t, "unpadded") {
		text = strings.TrimRight(text, "=")
	}
	width := rapid.SampledFrom([]int{0, 1, 3, 60, 64, 75, 76, 1000}).Draw(t, "width")
	text = wrap(text, width, rapid.SampledFrom([]string{`\n`, `\r\n`, ` `, `\t`, `\u000a`}).Draw(t, "break"))
	if rapid.Bool().Draw(t, "escaped") {
		text = strings.NewReplacer("/", `\/`, "+", `\u002b`, "Q", `\u0051`).Replace(text)
	}
	return text
}

// wrap puts a break after each width characters; a very long text is only wrapped in long lines, to save time.
func wrap(text string, width int, with string) string {
	if width == 0 || len(text) > 100*width && width < 10 {
		return text
	}
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + with)
		text = text[width:]
	}
	return b.String() + text
}

// genValue is a JSON value of at most the given depth.
func genValue(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\r\n\t"}).Draw(t, "space")
	kind := rapid.IntRange(0, 4+min(depth, 2)).Draw(t, "kind")
	switch kind {
	case 0:
		return space + `"` + genString(t) + `"`
	case 1, 2:
		return rapid.SampledFrom([]string{"0", "-0E+0", "-0E+1", "-0e+0", "1.5e-7", "-12", "100000000000000000000"}).Draw(t, "number") + space
	case 3, 4:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word") + space
	case 5:
		var items []string
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, genValue(t, depth-1))
		}
		return "[" + space + strings.Join(items, space+",") + "]"
	}
	return genObject(t, depth, space)
}

func genObject(t *rapid.T, depth int, space string) string {
	var items []string
	for i := range rapid.IntRange(0, 20).Draw(t, "members") {
		items = append(items, fmt.Sprintf(`%s"%d%s"%s:%s`, space, i, genString(t), space, genValue(t, depth-1)))
	}
	switch rapid.IntRange(0, 3).Draw(t, "data") {
	case 0:
		items = append(items, `"data":`+genValue(t, 0))
	case 1, 2:
		items = append(items, `"d\u0061ta" : "`+genPayload(t)+`"`)
	}
	return "{" + strings.Join(items, ",") + space + "}"
}

// stepReader gives its text in steps of the given sizes, in turn.
type stepReader struct {
	text  []byte
	steps []int
	n     int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	step := min(r.steps[r.n%len(r.steps)], len(p), len(r.text))
	copy(p, r.text[:step])
	r.text, r.n = r.text[step:], r.n+1
	return step, nil
}

// TestSplitJoinProperty: whatever the document and however it arrives, what is joined has the values of what was split,
// with payloads in canonical form, and in tolerant mode exactly the values.
func TestSplitJoinProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(genObject(rt, 3, ""))
		steps := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 7, 100, 4096, 32768, 1 << 20}), 1, 5).Draw(rt, "steps")
		opts := SplitOptions{Dir: dir, Tolerant: rapid.Bool().Draw(rt, "tolerant")}
		opts.Limits.BlobMemory = rapid.SampledFrom([]int64{-1, 10, 40000, 1 << 20}).Draw(rt, "memory")
		checkSplit(t, text, &stepReader{text: bytes.Clone(text), steps: steps}, opts)
	})
}
