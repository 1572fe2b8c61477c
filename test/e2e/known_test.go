package e2e

import (
	"runtime"
	"testing"
)

// knownFailures are the tests of this package that fail today, with the reason. A test on the list that begins to pass fails
// until it is taken off, so the list stays true.
var knownFailures = map[string]string{
	"TestInterface_UpdateAttachment_LastChangeTimeMovesWithAComment": "the tracker does not move the time for a comment alone, " +
		"and an answer that says otherwise would not agree with the next read",
	"TestInterface_FlagTypeChange_KeysAreFieldsThatChangedScopesToo": "the tracker names inclusions and exclusions whenever they " +
		"are sent, and no read shows all of them, so nobody can tell whether they changed",
	"TestInterface_GetAttachment_PrivateForItsSubmitter": "the tracker shows a private attachment to its submitter in the list " +
		"of the bug but not by its id, and without the id of the bug there is no other way to ask",
}

// trial stands in for a test, and takes note of a failure instead of failing.
type trial struct {
	testing.TB
	failed bool
}

func (r *trial) Error(args ...any)                 { r.Log(args...); r.failed = true }
func (r *trial) Errorf(format string, args ...any) { r.Logf(format, args...); r.failed = true }
func (r *trial) Fail()                             { r.failed = true }
func (r *trial) FailNow()                          { r.failed = true; runtime.Goexit() }
func (r *trial) Fatal(args ...any)                 { r.Log(args...); r.FailNow() }
func (r *trial) Fatalf(format string, args ...any) { r.Logf(format, args...); r.FailNow() }
func (r *trial) Failed() bool                      { return r.failed }

// tried runs a test without failing and tells whether it would have.
func tried(t testing.TB, test func(t testing.TB)) (failed bool) {
	r := &trial{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.failed
}

// known runs a test that is on the list of those that fail.
func known(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	reason, listed := knownFailures[t.Name()]
	switch failed := tried(t, test); {
	case !listed:
		t.Error("this test is not on the list of known failures")
	case !failed:
		t.Errorf("this test passes now: take it off the list of known failures, where it says %q", reason)
	}
}

func TestTriesAreJudged(t *testing.T) {
	for name, test := range map[string]func(t testing.TB){
		"Error": func(t testing.TB) { t.Error("wanted") }, "Errorf": func(t testing.TB) { t.Errorf("wanted") },
		"Fatal": func(t testing.TB) { t.Fatal("wanted") }, "Fatalf": func(t testing.TB) { t.Fatalf("wanted") },
		"FailNow": func(t testing.TB) { t.FailNow() },
	} {
		if !tried(t, test) {
			t.Errorf("%s does not count as a failure", name)
		}
	}
	if tried(t, func(testing.TB) {}) {
		t.Error("doing nothing counts as a failure")
	}
}
