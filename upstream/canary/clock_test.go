package canary_test

import (
	"database/sql" //nolint:depguard // only to write what a machine with another clock would
	"path/filepath"
	"testing"
	"time"
)

// TestAnotherBeginsAnewByAFastClock: the clock of the machine where somebody began anew is ahead. What begins here after that
// counts, although it is earlier by the clock there.
func TestAnotherBeginsAnewByAFastClock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "portico.db")
	w := newWorld(t, worldOptions{state: "sqlite:" + file})
	w.make(attachment("1"))
	w.sum("") // the campaign is known, and what was counted is written
	there, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	for _, statement := range []string{"DELETE FROM portico_tallies", "UPDATE portico_campaign SET started_at = ?1"} {
		if _, err := there.ExecContext(t.Context(), statement, time.Now().Add(time.Hour).UnixMicro()); err != nil {
			t.Fatal(err)
		}
	}
	w.sum("") // it is noticed here
	w.make(attachment("1"))
	if got := w.sum(""); got.Compared != 1 {
		t.Errorf("got %+v, want one comparison", got)
	}
}
