package jsonblob

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSplitLimits(t *testing.T) {
	for _, c := range []struct {
		kind      LimitKind
		limits    Limits
		good, bad string
	}{
		{LimitBody, Limits{Body: 10}, `{"a":1}   `, `{"a":1}    `},
		{LimitBody, Limits{Body: 20}, `{"data":"QUJDQUJD" }`, `{"data":"QUJDQUJDQUJD"}`},
		{LimitSkeleton, Limits{Skeleton: 14}, `{"data":"QUJDQUJDQUJD"}`, `{"data":"QUJD","b":1}`},
		{LimitDepth, Limits{}, strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat(`[`, 513)},
		{LimitDepth, Limits{Depth: 2}, `{"a":{}}`, `{"a":[{}]}`},
		{LimitMembers, Limits{Members: 3}, `{"a":[1,2]}`, `{"a":[1,{"b":2,"c":3}]}`},
		{LimitString, Limits{String: 4}, `["abcd"]`, `["abcde"]`},
		{LimitString, Limits{String: 4}, `{"abcd":1,"data":"QUJDQUJD"}`, `{"abcde":1}`},
		{LimitNumber, Limits{}, `[` + strings.Repeat("1", 256) + `,-1e99]`, `[` + strings.Repeat("1", 257) + `]`},
	} {
		for how, source := range splitSources {
			t.Run(string(c.kind)+"/"+how, func(t *testing.T) {
				before := openSpools(t)
				c.limits.BlobMemory = -1
				_, blobs, err := Split(nil, source(c.good), SplitOptions{Limits: c.limits})
				if err != nil {
					t.Errorf("%.40s: %v", c.good, err)
				}
				_ = CloseBlobs(blobs)
				_, _, err = Split(nil, source(c.bad), SplitOptions{Limits: c.limits})
				var limit *LimitError
				if !errors.As(err, &limit) || limit.Kind != c.kind {
					t.Errorf("%.40s: %v", c.bad, err)
				}
				if n := openSpools(t); n != before {
					t.Errorf("%d files are left open", n-before)
				}
			})
		}
	}
}

// TestAnswersTakeLittleMemory: no budget covers what trackers send, so that a large threshold for clients does not apply to it.
func TestAnswersTakeLittleMemory(t *testing.T) {
	for memory, want := range map[int64]int64{1 << 30: 256 << 10, 256 << 10: 256 << 10, 100: 100, 0: 256 << 10, -1: -1} {
		if limits := AnswerLimits(memory).WithDefaults(); limits.BlobMemory != want {
			t.Errorf("%d bytes of a response stay in memory where clients have %d", limits.BlobMemory, memory)
		}
	}
}

func TestNoLimits(t *testing.T) {
	none := Limits{Body: -1, Skeleton: -1, Depth: -1, Members: -1, String: -1, BlobMemory: -1}
	text := strings.Repeat("[", 2000) + strings.Repeat("9,", 2000) + "9" + strings.Repeat("]", 2000)
	if skeleton, _ := mustSplit(t, text, SplitOptions{Limits: none}); string(skeleton) != text {
		t.Error("the document changed")
	}
}

// TestSplitBlamesTheSource checks that the source's failure is told as such: neither the client's syntax nor an end of the text.
func TestSplitBlamesTheSource(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{``, `{`, `{"a`, `{"data":"QUJD`, `{"data":"QUJD\`, `12`, `{}`, `["` + "\xc3"} {
		before := openSpools(t)
		src := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
		_, _, err := Split(nil, src, SplitOptions{Limits: Limits{BlobMemory: -1}})
		if syntax := (*SyntaxError)(nil); !errors.Is(err, broken) || errors.As(err, &syntax) {
			t.Errorf("%s: %v", text, err)
		}
		if n := openSpools(t); n != before {
			t.Errorf("%s: %d files are left open", text, n-before)
		}
	}
	if _, _, err := Split(nil, silent{}, SplitOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that says nothing: %v", err)
	}
	body := http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader(`{"a":"bcd"}`)), 5)
	if _, _, err := Split(nil, body, SplitOptions{}); !errors.As(err, new(*http.MaxBytesError)) {
		t.Errorf("MaxBytesReader: %v", err)
	}
}

// silent is a source that never says anything.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// TestTolerantKeepsText: what is not canonical base64 stays as it was sent, within the limit for strings.
func TestTolerantKeepsText(t *testing.T) {
	for name, inside := range map[string]string{
		"text":           strings.Repeat(`a \u00fc\n`, 400),
		"wrapped base64": strings.Repeat(strings.Repeat("QUJD", 19)+`\n`, 40),
		"late surprise":  strings.Repeat("QUJD", 4000) + "=?",
		"base64":         strings.Repeat("QUJD", 4000) + "QQ==",
	} {
		for _, memory := range []int64{0, -1} {
			text := `{"flags":[{"data":"` + inside + `"}],"data":"QQ=="}`
			limits := Limits{BlobMemory: memory, String: len(inside)}
			skeleton, blobs := mustSplit(t, text, SplitOptions{Tolerant: true, Limits: limits})
			if got := rejoin(t, skeleton, blobs); got != text || len(blobs) != 1 && name != "base64" {
				t.Errorf("%s: %d blobs, and the document changed: %t", name, len(blobs), got != text)
			}
			if len(blobs) == 1 && blobs[0].offset != 0 {
				t.Errorf("%s: what went back to the skeleton still lies in the store", name)
			}
			limits.String--
			var limit *LimitError
			_, _, err := Split(nil, strings.NewReader(text), SplitOptions{Tolerant: true, Limits: limits})
			if (name != "base64") != errors.As(err, &limit) {
				t.Errorf("%s: too long by a byte: %v", name, err)
			}
		}
	}
}
