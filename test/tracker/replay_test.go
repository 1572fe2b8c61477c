package tracker_test

import (
	"bufio"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"portico/test/tracker"
	"portico/test/wire"
)

const recordings = "../wire/testdata/bugzilla-5.2.jsonl"

// TestReplay sends all recorded requests in order over real sockets and compares the answers that are known.
func TestReplay(t *testing.T) {
	exchanges, err := wire.Load(recordings)
	if err != nil {
		t.Fatal(err)
	}
	exceptions := readExceptions(t)
	server := tracker.New(tracker.Options{})
	defer server.Close()
	front := httptest.NewServer(server)
	defer front.Close()
	compared, different := 0, 0
	for _, e := range exchanges {
		if e.Reset {
			server.Reset()
		}
		got, err := wire.Send(t.Context(), front.URL, e.Request)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if e.Response == nil {
			continue
		}
		compared++
		diffs := exceptions.unexplained(e.Name, wire.Diff(*e.Response, got))
		if len(diffs) > 0 {
			different++
			t.Errorf("%s (%s %s): %d differences\n\t%s", e.Name, e.Request.Method, brief(e.Request.Path), len(diffs), strings.Join(diffs[:min(4, len(diffs))], "\n\t"))
		}
	}
	t.Logf("%d of %d compared answers differ without an explanation; %d requests sent", different, compared, len(exchanges))
	if compared != 957 {
		t.Errorf("compared %d answers, the recordings have 957", compared)
	}
	exceptions.report(t)
}

func brief(path string) string {
	return path[:min(len(path), 100)]
}

// exceptionRow explains one difference of one recording.
type exceptionRow struct {
	name, prefix, reason string
	used                 bool
}

type exceptionTable []*exceptionRow

func readExceptions(t *testing.T) exceptionTable {
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
		parts := strings.SplitN(lines.Text(), "\t", 3)
		if len(parts) != 3 {
			t.Fatalf("exception without a reason: %q", lines.Text())
		}
		table = append(table, &exceptionRow{name: parts[0], prefix: parts[1], reason: parts[2]})
	}
	return table
}

func (x exceptionTable) unexplained(name string, diffs []string) []string {
	var rest []string
	for _, d := range diffs {
		explained := false
		for _, row := range x {
			if row.name == name && strings.HasPrefix(d, row.prefix) {
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
