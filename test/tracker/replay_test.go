package tracker_test

import (
	"bufio"
	"bytes"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portico/test/tracker"
	"portico/test/wire"
)

// TestReplay sends all recorded requests in order over real sockets and compares the responses that are known. It compares the entity tags
// of those whose content is the same on every run. Because a tag is a digest of the whole response, this also proves the bodies that the
// recordings hold in part, such as the attachment of 1 MB.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		recordings, dialect string
		compared, tags      int
	}{
		{"bugzilla-5.2", tracker.DialectBugzilla5, 957, 400},
		{"bmo", tracker.DialectBMO, 601, 0},
		{"harmony", tracker.DialectHarmony, 601, 0},
	} {
		t.Run(c.recordings, func(t *testing.T) {
			t.Parallel()
			exceptions := readExceptions(t, c.recordings)
			if compared, tags := replay(t, c.recordings, c.dialect, exceptions); compared != c.compared || tags < c.tags {
				t.Errorf("compared %d responses and %d entity tags, the recordings have %d and %d", compared, tags, c.compared, c.tags)
			}
			exceptions.report(t)
		})
	}
}

func replay(t *testing.T, recordings, dialect string, exceptions exceptionTable) (compared, tags int) {
	exchanges, err := wire.Load("../wire/testdata/" + recordings + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	server := tracker.New(tracker.Options{Dialect: dialect})
	defer server.Close()
	front := httptest.NewServer(server)
	defer front.Close()
	for _, e := range exchanges {
		if e.Reset {
			server.Reset()
		}
		got, err := wire.Send(t.Context(), front.URL, e.Request)
		if e.Response == nil {
			continue
		}
		compared++
		dropped := e.Response.Status == 0
		if dropped != (err != nil) {
			t.Errorf("%s: the connection was recorded as dropped: %v; error: %v", e.Name, dropped, err)
		}
		if dropped || err != nil {
			continue
		}
		if dialect == tracker.DialectBugzilla5 && settled(*e.Response) {
			tags++
			if want, have := e.Response.Headers["etag"], got.Headers["etag"]; want != have {
				t.Errorf("%s: recorded tag %s, got %s", e.Name, want, have)
			}
		}
		if diffs := exceptions.unexplained(e.Name, wire.Diff(*e.Response, got)); len(diffs) > 0 {
			t.Errorf("%s (%s %s): %d differences\n\t%s", e.Name, e.Request.Method, brief(e.Request.Path), len(diffs), strings.Join(diffs[:min(4, len(diffs))], "\n\t"))
		}
	}
	return compared, tags
}

// settled tells whether an answer is the same on every run: no error text, no time of the day, no address, and no list in random order.
func settled(r wire.Response) bool {
	for _, odd := range []string{"2026-11-21T", `"error":true`, "ARRAY(", "HASH(", `"token"`} {
		if bytes.Contains(r.Body, []byte(odd)) {
			return false
		}
	}
	for _, part := range strings.Split(string(r.Body), `"inclusions":[`)[1:] {
		if list, _, _ := strings.Cut(part, "]"); strings.Contains(list, ",") {
			return false
		}
	}
	several := bytes.Count(r.Body, []byte(`"changes"`)) > 1 && bytes.Contains(r.Body, []byte(`"flagtypes"`))
	return r.Headers["etag"] != "" && r.Status < 400 && !several && !bytes.Contains(r.Body, []byte(`"comments"`))
}

func brief(path string) string {
	return path[:min(len(path), 100)]
}

// exceptionRow explains differences of one exchange, or with the name "*" of all.
type exceptionRow struct {
	name, reason string
	differs      *regexp.Regexp
	used         bool
}

type exceptionTable []*exceptionRow

// readExceptions reads the rows that begin with the name of the recordings.
func readExceptions(t *testing.T, recordings string) exceptionTable {
	f, err := os.Open("testdata/replay-exceptions.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var table exceptionTable
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		parts := strings.SplitN(lines.Text(), "\t", 4)
		if len(parts) != 4 {
			t.Fatalf("exception without a reason: %q", lines.Text())
		}
		if slices.Contains(strings.Split(parts[0], ","), recordings) {
			table = append(table, &exceptionRow{name: parts[1], differs: regexp.MustCompile("^(" + parts[2] + ")"), reason: parts[3]})
		}
	}
	return table
}

func (x exceptionTable) unexplained(name string, diffs []string) []string {
	var rest []string
	for _, d := range diffs {
		explained := false
		for _, row := range x {
			if (row.name == name || row.name == "*") && row.differs.MatchString(d) {
				row.used, explained = true, true
			}
		}
		if !explained {
			rest = append(rest, d)
		}
	}
	return rest
}

// report finds exceptions that explain nothing any more.
func (x exceptionTable) report(t *testing.T) {
	for _, row := range x {
		if !row.used {
			t.Errorf("the exception for %s explains nothing: %s", row.name, row.reason)
		}
	}
}
