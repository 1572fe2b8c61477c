package state

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/mapping"
	processes "portico/test/process"
)

// addressVariable makes the test's program another process that uses the database at this address.
const addressVariable = "PORTICO_STATE_TEST_DSN"

// How much each process or Store does in the tests below.
const (
	jobs   = 4
	perJob = 15
)

// runJob opens the database when its standard input says so, and writes.
func runJob() (code int) {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 2
	}
	s, err := Open(context.Background(), os.Getenv(addressVariable))
	if err == nil {
		err = errors.Join(workOn(s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// future is a minute that no Store thinks is old.
var future = time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)

func someTally() Tally {
	return Tally{
		At: future, Answered: "main", Other: "next", Operation: mapping.OpAttachment,
		Compared: 1, Dropped: map[string]int64{"queue": 2}, AnsweredLatency: []int64{0, 1}, OtherLatency: []int64{0, 0, 3},
	}
}

// workOn adds tallies and revises the phases, each time until it was the first.
func workOn(s *Store) error {
	ctx := context.Background()
	for made := 0; made < perJob; {
		present, err := s.CurrentRevision(ctx)
		if err != nil {
			return err
		}
		_, err = s.Revise(ctx, present.Version, Revision{Table: []byte("{}")}, "")
		if _, late := errors.AsType[*ConflictError](err); late {
			continue
		} else if err != nil {
			return err
		}
		made++
		// The next minute comes first: Stores that lock rows as they come would
		// wait in a circle.
		later := someTally()
		later.At = later.At.Add(time.Minute)
		tallies := []Tally{someTally(), later}
		if made%2 == 0 {
			tallies[0], tallies[1] = tallies[1], tallies[0]
		}
		if err := s.AddTallies(ctx, tallies); err != nil {
			return err
		}
	}
	return nil
}

// checkWork checks what all of them have done together.
func checkWork(t *testing.T, s *Store, done int64) {
	t.Helper()
	present, err := s.CurrentRevision(t.Context())
	must(t, err)
	if present.Version != done {
		t.Errorf("the phases have version %d, want %d", present.Version, done)
	}
	tallies, err := s.Tallies(t.Context(), future)
	must(t, err)
	if len(tallies) != 2 {
		t.Fatalf("there are %d tallies, want 2", len(tallies))
	}
	for _, tally := range tallies {
		got := []int64{tally.Compared, tally.Dropped["queue"], tally.AnsweredLatency[1], tally.OtherLatency[2]}
		if want := []int64{done, 2 * done, done, 3 * done}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the sums are %v, want %v", got, want)
		}
	}
}

// process starts the test's program as a job that waits for a line.
func process(t *testing.T, dsn string) (cmd *exec.Cmd, in io.Writer) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), addressVariable+"="+dsn)
	in, err := cmd.StdinPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, in
}

// TestUnreadableFolder opens a database where only its owner may look, or nobody may
// write. Root may do everything, so another account tries there.
func TestUnreadableFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	account, err := processes.PostgresAccount(t.TempDir())
	must(t, err)
	cmd := exec.Command(os.Args[0])
	if account != nil {
		cmd.Path = publicCopy(t, os.Args[0])
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), addressVariable+"=sqlite:"+filepath.Join(dir, "portico.db"))
	cmd.Stdin = strings.NewReader("\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "state: opening the database: ") || !strings.Contains(string(out), "permission denied") {
		t.Errorf("got %v and %q, want that it is not permitted", err, out)
	}
}

// publicCopy copies a program to where everybody may run it.
func publicCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "portico-state-") //nolint:usetesting // others may not look into the folder of t.TempDir
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	text, err := os.ReadFile(program)
	must(t, err)
	program = filepath.Join(dir, "program")
	must(t, os.WriteFile(program, text, 0o755))
	return program
}

func TestProcessesAtOnce(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		var all [jobs]*exec.Cmd
		var starts [jobs]io.Writer
		for i := range all {
			all[i], starts[i] = process(t, dsn)
		}
		for _, start := range starts {
			fmt.Fprintln(start)
		}
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process failed: %v", err)
			}
		}
		s := open(t, dsn)
		checkWork(t, s, jobs*perJob)
		if got, want := count(t, s, "portico_schema"), versions(t); got != want {
			t.Errorf("the form was made in %d steps, want %d", got, want)
		}
	})
}

func TestServerStartsAgain(t *testing.T) {
	s := open(t, newDatabase(t))
	must(t, s.Append(t.Context(), Record{Actor: "before"}))
	server, err := sharedServer()
	must(t, err)
	server.End()
	if err := s.Append(t.Context(), Record{Actor: "meanwhile"}); err == nil {
		t.Error("something was written without a server")
	} else if strings.Contains(err.Error(), password) {
		t.Error("the error shows the password: ", err)
	}
	must(t, server.Begin())
	must(t, s.Append(t.Context(), Record{Actor: "after"}))
	if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 2 {
		t.Errorf("got %v, %v, want two records", records, err)
	}
}
