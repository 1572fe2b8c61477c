package tracker_test

import (
	"bufio"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portico/test/tracker"
	"portico/test/wire"
)

// TestReplay sends all recorded requests in order over real sockets and compares the answers that are known.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		recordings, dialect string
		compared            int
	}{
		{"bugzilla-5.2", tracker.DialectBugzilla5, 957},
		{"bmo", tracker.DialectBMO, 601},
		{"harmony", tracker.DialectHarmony, 601},
	} {
		t.Run(c.recordings, func(t *testing.T) {
			exceptions := readExceptions(t, c.recordings)
			compared, different := replay(t, c.recordings, c.dialect, exceptions)
			t.Logf("%d of %d compared answers differ without an explanation", different, compared)
			if compared != c.compared {
				t.Errorf("compared %d answers, the recordings have %d", compared, c.compared)
			}
			exceptions.report(t)
		})
	}
}

func replay(t *testing.T, recordings, dialect string, exceptions exceptionTable) (compared, different int) {
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
		diffs := exceptions.unexplained(e.Name, wire.Diff(*e.Response, got))
		if len(diffs) > 0 {
			different++
			t.Errorf("%s (%s %s): %d differences\n\t%s", e.Name, e.Request.Method, brief(e.Request.Path), len(diffs), strings.Join(diffs[:min(4, len(diffs))], "\n\t"))
		}
	}
	return compared, different
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
