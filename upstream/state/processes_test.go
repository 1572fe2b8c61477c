package state

import (
	"strings"
	"testing"
	"time"

	"portico/mapping"
)

// How much each process or Store does in the tests below.
const (
	jobs   = 4
	perJob = 15
)

// future is a minute that no Store thinks is old.
var future = time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)

func someTally() Tally {
	return Tally{
		At: future, Answered: "main", Other: "next", Operation: mapping.OpAttachment,
		Compared: 1, Dropped: map[string]int64{"queue": 2}, AnsweredLatency: []int64{0, 1}, OtherLatency: []int64{0, 0, 3},
	}
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
