package canary

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portico/mapping"
)

// roomy is a spool for answers of so many bytes.
func roomy(t testing.TB, most int64) (CaptureOptions, *spool) {
	o := CaptureOptions{MaxBody: most, Split: mapping.SplitOptions{Dir: t.TempDir()}}
	disk := &budget{}
	disk.give(math.MaxInt64)
	s := o.spool(disk)
	t.Cleanup(s.release)
	return o, s
}

// captured gives the reply that a text makes which comes in pieces of a size.
func captured(t testing.TB, text string, piece int) (Reply, error) {
	t.Helper()
	o, s := roomy(t, 1<<20)
	for part := range slices.Chunk([]byte(text), piece) {
		if _, err := s.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	return o.fill(Reply{}, s)
}

// contents are insides of JSON strings, long and short, that are base64 or nearly.
func contents() []string {
	long := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789"), 600))
	stamp := string(textPayload([]byte("x")).stamp())
	return []string{
		"", "aGVsbG8=", "hello", long, long[:len(long)-1] + "=", long + "QQ==", long + "QR==", long + "Q===", long + "QQ==QQ==", long + "Q", long + "=", long + "?",
		strings.Repeat("/", 8000), strings.Repeat(`\/`, 8000), strings.Repeat(`\u002f`, 8000), strings.Repeat(`\u002F`, 8000),
		long + `\\`, long + `\"`, long + `\ud83d\ude00`, long + "ü", stamp, strings.Replace(stamp, "c", `\u0063`, 1), stamp + long, "portico",
		long[:shortContent], long[:shortContent+4], long[:shortContent-1] + `\/`,
	}
}

// TestContentIsWhatSplitMakesOfIt, however it comes in.
func TestContentIsWhatSplitMakesOfIt(t *testing.T) {
	for n, content := range contents() {
		for _, form := range []string{
			`{"attachments":{"1":{"data":"%s","size":1}},"bugs":{}}`, `{"data" : "%s" ,"x":"data","y":["data","%[1]s"]}`, `[{"data":["%s"]},{"xdata":"%[1]s"}]`,
			`{"a":"\"data\":","data":"%s"}`, `{"data":{"data":"%s"}}`,
		} {
			text := fmt.Sprintf(form, content)
			want := split(t, text)
			for _, piece := range []int{1, 7, 4096, 1 << 20} {
				got, err := captured(t, text, piece)
				if err != nil || !bytes.Equal(got.Body, want.Body) && len(want.Payloads) == len(got.Payloads) {
					t.Errorf("content %d in %.20s… in pieces of %d: %.200s (%v), want %.200s", n, form, piece, got.Body, err, want.Body)
				}
				got.Status = want.Status
				if found := Compare(mapping.OpAttachment, want, got, Rules{}); len(found) > 0 {
					t.Errorf("content %d in %.20s… in pieces of %d: found %s", n, form, piece, said(found))
				}
			}
		}
	}
}

// TestContentIsTheSameInAnySpelling, in answers that nobody has taken apart, such as recorded ones.
func TestContentIsTheSameInAnySpelling(t *testing.T) {
	form := `{"attachments":{"1":{"id":1,"data":"%s"}},"bugs":{}}`
	plain := ok(fmt.Sprintf(form, "aa/a"))
	for spelling, want := range map[string]string{
		`aa\/a`: "", `aa\u002Fa`: "", `\u0061a/a`: "", `aa\\a`: "digest $.attachments[*].data", `aa\/b`: "digest $.attachments[*].data",
	} {
		if got := said(Compare(mapping.OpAttachment, plain, ok(fmt.Sprintf(form, spelling)), Rules{})); got != want {
			t.Errorf("%s: found %q, want %q", spelling, got, want)
		}
	}
}

// TestAnswersAreKeptAsTheyAre where they have no long content.
func TestAnswersAreKeptAsTheyAre(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := []byte(genDocument(r, "text"))
		var f contentFilter
		var got []byte
		for part := range slices.Chunk(text, rapid.IntRange(1, 50).Draw(r, "piece")) {
			got = append(got, f.pass(part)...)
		}
		if !bytes.Equal(got, text) {
			r.Fatalf("%s became %s", text, got)
		}
	})
}

// TestLongContentStaysBroken where it is no JSON.
func TestLongContentStaysBroken(t *testing.T) {
	long := strings.Repeat("QUJD", 4000)
	for name, text := range map[string]string{
		"a line break": `{"data":"` + long + "\n" + long + `"}`,
		"no end":       `{"data":"` + long,
		"more":         `{"data":"` + long + `"}}`,
		"twice":        `{"data":"` + long + `","data":"` + long + `"}`,
	} {
		if got, err := captured(t, text, 1000); err != nil || got.Failure != string(mapping.ReasonBadAnswer) {
			t.Errorf("%s: got %.100s (%v), want a failure", name, got.Body, err)
		}
	}
}

// TestContentTakesNoRoom, neither in memory nor in files, whatever its length.
func TestContentTakesNoRoom(t *testing.T) {
	o, s := roomy(t, 64<<10)
	s.end = 4 * s.most
	piece := bytes.Repeat([]byte("QUJD"), 16<<10)
	_, _ = s.Write([]byte(`{"attachments":{"1":{"data":"`))
	for range 1600 { // 100 MB
		if _, err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = s.Write([]byte(`","size":1}}}`))
	if len(s.memory) > 1000 || s.file != nil || cap(s.filter.out) > 1000 || cap(s.filter.head) > 2*shortContent {
		t.Errorf("%d bytes are in memory, and there is a file: %v", len(s.memory), s.file != nil)
	}
	got, err := o.fill(Reply{}, s)
	if err != nil || len(got.Payloads) != 1 || got.Payloads[0].Size != int64(1600*len(piece)/4*3) {
		t.Errorf("got %.100s with %+v (%v)", got.Body, got.Payloads, err)
	}
}

// TestEndlessAnswersAreGivenUpOn when it is not content that has no end.
func TestEndlessAnswersAreGivenUpOn(t *testing.T) {
	_, s := roomy(t, 64<<10)
	s.end = 4 * s.most
	n, err := io.CopyN(s, zeros{}, 1<<20)
	if !errors.Is(err, errEndless) || n > 8*s.most {
		t.Errorf("%d bytes were taken (%v)", n, err)
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
