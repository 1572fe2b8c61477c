package jsonblob

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// rejoin gives the document that Join makes of what Split took apart.
func rejoin(t testing.TB, skeleton []byte, blobs []*Blob) string {
	t.Helper()
	joined, err := Join(skeleton, blobs)
	if err != nil {
		t.Fatalf("Join(%s): %v", skeleton, err)
	}
	body := joined.Open()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("read the joined text: %v", err)
	}
	if err := body.Close(); err != nil {
		t.Fatalf("close the joined text: %v", err)
	}
	if int64(len(text)) != joined.Len() {
		t.Fatalf("Len() = %d, but %d bytes came", joined.Len(), len(text))
	}
	return string(text)
}

// splitSources are ways in which the same text can arrive.
var splitSources = map[string]func(string) io.Reader{
	"at once":      func(s string) io.Reader { return strings.NewReader(s) },
	"byte by byte": func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
	"data and EOF": func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
}

func TestSplitAccepts(t *testing.T) {
	for _, c := range []struct {
		name, in, skeleton, joined string
		opts                       SplitOptions
	}{
		{name: "no payload", in: ` { "a" : [ 1 , true , null ] } `, skeleton: `{"a":[1,true,null]}`},
		{name: "scalar", in: "\t\"x\"\r\n", skeleton: `"x"`},
		{name: "payload", in: `{"data":"QUJD","b":1}`, skeleton: `{"data":-0E+0,"b":1}`, joined: `{"data":"QUJD","b":1}`},
		{name: "empty payload", in: `{"data":""}`, skeleton: `{"data":-0E+0}`, joined: `{"data":""}`},
		{name: "null", in: `{"data":null}`, skeleton: `{"data":null}`},
		{name: "not a string", in: `{"data":[{"data":"QQ=="},"x"]}`, skeleton: `{"data":[{"data":-0E+0},"x"]}`, joined: `{"data":[{"data":"QQ=="},"x"]}`},
		{name: "escaped name", in: `{"d\u0061ta":"QQ=="}`, skeleton: `{"d\u0061ta":-0E+0}`, joined: `{"d\u0061ta":"QQ=="}`},
		{name: "other case", in: `{"Data":"?"}`, skeleton: `{"Data":"?"}`},
		{name: "element", in: `["data","?"]`, skeleton: `["data","?"]`},
		{name: "escapes", in: `{"data":"\/\u002b\u002FA"}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"/+/A"}`},
		{name: "line breaks", in: `{"data":"QU\r\nJ\tDQ Q\n"}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QUJDQQ=="}`},
		{name: "no padding", in: `{"data":"QUI"}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QUI="}`},
		{name: "half padding", in: `{"data":"QQ="}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QQ=="}`},
		{name: "broken padding", in: `{"data":"QQ=\n= "}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QQ=="}`},
		{name: "bits beyond the end", in: `{"data":"QR=="}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QQ=="}`},
		{name: "order", in: `[{"data":"QQ=="},{"data":"Qg=="}]`, skeleton: `[{"data":-0E+0},{"data":-0E+1}]`, joined: `[{"data":"QQ=="},{"data":"Qg=="}]`},
		{name: "forged placeholder", in: `[-0E+0,-0e+0,-0E5,-0.0E+0]`, skeleton: `[-0e+0,-0e+0,-0e5,-0.0E+0]`},
		{name: "forged in a string", in: `["-0E+0","\"-0E+0"]`, skeleton: `["-0E+0","\"-0E+0"]`},
		{name: "depth asked for", in: `{"data":"QQ==","x":{"data":"?"}}`, skeleton: `{"data":-0E+0,"x":{"data":"?"}}`, joined: `{"data":"QQ==","x":{"data":"?"}}`, opts: SplitOptions{Depth: 1}},
		{name: "other depth", in: `{"data":"?","x":{"data":"QQ=="}}`, skeleton: `{"data":"?","x":{"data":-0E+0}}`, joined: `{"data":"?","x":{"data":"QQ=="}}`, opts: SplitOptions{Depth: 2}},
		{name: "tolerant", in: `{"data":"Q\u0051=="}`, skeleton: `{"data":-0E+0}`, joined: `{"data":"QQ=="}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, no base64", in: `{"data":"QUJD h\u00fc\"", "x":1}`, skeleton: `{"data":"QUJD h\u00fc\"","x":1}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, no padding", in: `{"data":"QUI"}`, skeleton: `{"data":"QUI"}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, half padding", in: `{"data":"QQ="}`, skeleton: `{"data":"QQ="}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, bits beyond", in: `{"data":"QR=="}`, skeleton: `{"data":"QR=="}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, after padding", in: `{"data":"QQ==QQ=="}`, skeleton: `{"data":"QQ==QQ=="}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, break", in: `{"data":"QUJD\n"}`, skeleton: `{"data":"QUJD\n"}`, opts: SplitOptions{Tolerant: true}},
		{name: "tolerant, one character", in: `{"data":"QUJDQ"}`, skeleton: `{"data":"QUJDQ"}`, opts: SplitOptions{Tolerant: true}},
		{name: "many names", in: `{` + manyNames(40) + `}`, skeleton: `{` + manyNames(40) + `}`},
		{name: "deepest", in: strings.Repeat("[", 512) + strings.Repeat("]", 512), skeleton: strings.Repeat("[", 512) + strings.Repeat("]", 512)},
		{name: "same name elsewhere", in: `{"a":{"a":{"a":1},"b":{"a":1}},"b":1}`, skeleton: `{"a":{"a":{"a":1},"b":{"a":1}},"b":1}`},
	} {
		if c.joined == "" {
			c.joined = c.skeleton
		}
		for how, source := range splitSources {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				skeleton, blobs, err := Split([]byte("before"), source(c.in), c.opts)
				if err != nil {
					t.Fatalf("Split(%s): %v", c.in, err)
				}
				if got := string(skeleton); got != "before"+c.skeleton {
					t.Errorf("skeleton %s, want %s", got, c.skeleton)
				}
				if got := rejoin(t, skeleton[len("before"):], blobs); got != c.joined {
					t.Errorf("joined %s, want %s", got, c.joined)
				}
				if err := CloseBlobs(blobs); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// manyNames is so many members, with the last name escaped.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"` + strings.Repeat("n", i) + `":1,`)
	}
	return b.String() + `"\u006em":2`
}

// splitRefused is what is no JSON, or no base64, and where that shows.
var splitRefused = []struct {
	in   string
	kind SyntaxKind
	at   int64
}{
	{"", SyntaxEmpty, 0},
	{" \n", SyntaxTruncated, 2},
	{`{"a":1`, SyntaxTruncated, 6},
	{`{"a`, SyntaxTruncated, 3},
	{`{"data":"QUJD`, SyntaxTruncated, 13},
	{`{"data":"QUJD\u00`, SyntaxTruncated, 17},
	{`tru`, SyntaxTruncated, 3},
	{`{"a"}`, SyntaxUnexpected, 4},
	{`{"a":}`, SyntaxUnexpected, 5},
	{`{"a":1,}`, SyntaxUnexpected, 7},
	{`[1,]`, SyntaxUnexpected, 3},
	{`[1}`, SyntaxUnexpected, 2},
	{`{]`, SyntaxUnexpected, 1},
	{`{1:2}`, SyntaxUnexpected, 1},
	{`[NaN]`, SyntaxUnexpected, 1},
	{`[nan]`, SyntaxUnexpected, 2},
	{`[1,/**/2]`, SyntaxUnexpected, 3},
	{`'a'`, SyntaxUnexpected, 0},
	{`]`, SyntaxUnexpected, 0},
	{"\xff\xfe{\x00}\x00", SyntaxUnexpected, 0},
	{`[01]`, SyntaxNumber, 1},
	{`[1.]`, SyntaxNumber, 1},
	{`[1e]`, SyntaxNumber, 1},
	{`[-]`, SyntaxNumber, 1},
	{`[1-2]`, SyntaxNumber, 1},
	{`[+1]`, SyntaxUnexpected, 1},
	{`[.5]`, SyntaxUnexpected, 1},
	{"[\"a\nb\"]", SyntaxControl, 3},
	{"{\"data\":\"QUJD\nQUJD\"}", SyntaxControl, 13},
	{`["\x"]`, SyntaxEscape, 2},
	{`["\u12g4"]`, SyntaxEscape, 2},
	{`{"data":"\q"}`, SyntaxEscape, 9},
	{`{} {}`, SyntaxTrailing, 3},
	{`1 x`, SyntaxTrailing, 2},
	{"\xEF\xBB\xBF{}", SyntaxBOM, 0},
	{`{"a":1,"b":2,"a":3}`, SyntaxDuplicate, 13},
	{`{"a":1,"\u0061":3}`, SyntaxDuplicate, 7},
	{`{"data":"QQ==","data":"QQ=="}`, SyntaxDuplicate, 15},
	{`{` + manyNames(30) + `,"nm":1}`, SyntaxDuplicate, 1 + int64(len(manyNames(30))) + 1},
	{`{` + manyNames(3) + `,"nm":1}`, SyntaxDuplicate, 1 + int64(len(manyNames(3))) + 1},
	{"[\"\xff\"]", SyntaxUTF8, 2},
	{"[\"a\xc3\"]", SyntaxUTF8, 3},
	{"[\"\xed\xa0\x80\"]", SyntaxUTF8, 2},
	{"{\"data\":\"\xff\"}", SyntaxUTF8, 9},
	{`["\ud800"]`, SyntaxSurrogate, 2},
	{`["\udc00\ud800"]`, SyntaxSurrogate, 2},
	{`["\ud800\u0041"]`, SyntaxSurrogate, 2},
	{`{"data":"\ud83d"}`, SyntaxSurrogate, 9},
	{`{"data":"QUJD-_=="}`, SyntaxBase64, 13},
	{`{"data":"QUJDü"}`, SyntaxBase64, 13},
	{`{"data":"\u0000"}`, SyntaxBase64, 9},
	{`{"data":"QUJD\ud83d\ude00"}`, SyntaxBase64, 13},
	{`{"data":"QQ==QQ=="}`, SyntaxBase64, 13},
	{`{"data":"QUJD="}`, SyntaxBase64, 13},
	{`{"data":"QQ==="}`, SyntaxBase64, 13},
	{`{"data":"QUI=="}`, SyntaxBase64, 13},
	{`{"data":"="}`, SyntaxBase64, 9},
	{`{"data":"Q"}`, SyntaxBase64, 10},
	{`{"data":"QUJD\nQ"}`, SyntaxBase64, 16},
	{`{"data":"?","x":"","data":1}`, SyntaxDuplicate, 19},
	{`{"data":"?","x":{"data":"Q"}}`, SyntaxBase64, 9},
	{`{"data":"?"`, SyntaxTruncated, 11},
}

func TestSplitRefuses(t *testing.T) {
	for _, c := range splitRefused {
		for how, source := range splitSources {
			t.Run(c.in+"/"+how, func(t *testing.T) {
				_, blobs, err := Split(nil, source(c.in), SplitOptions{})
				var syntax *SyntaxError
				if !errors.As(err, &syntax) || syntax.Kind != c.kind || syntax.Offset != c.at {
					t.Errorf("got %v, want kind %d at %d", err, c.kind, c.at)
				}
				if blobs != nil {
					t.Errorf("got blobs with an error")
				}
			})
		}
	}
}
