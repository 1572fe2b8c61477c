package pages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"portico/upstream/switchover"
)

func TestSwitchoverPage(t *testing.T) {
	s := open(t)
	a := s.get("/switchover")
	if a.status != 200 || a.kind != pageKind {
		t.Fatalf("%d %s", a.status, a.kind)
	}
	a.contains(t, "product WebShop", "10 % of the callers", "user agent mylyn*", `<li class="here" aria-current="step">new-compare</li>`, `<li class="passed">old</li>`,
		"90,412", "Ids without a pair", "attachment 4711", "webshop: new, reads new-compare, writes old-compare", "Monday’s release", "Send everything to current", "everything else")
}

// A step is offered where there is one: not ahead of new, nor back from old.
func TestOfferedSteps(t *testing.T) {
	s := open(t)
	offered := func() (ahead, back int) {
		page := s.get("/switchover").body
		return strings.Count(page, ">Next step<"), strings.Count(page, ">Step back<")
	}
	if ahead, back := offered(); ahead != 2 || back != 3 {
		t.Errorf("of three rules, %d can go ahead and %d back", ahead, back)
	}
	status := s.moving.Status(t.Context())
	table := status.Table
	table.Rules[2].Reads = switchover.PhaseOld
	if err := s.moving.Change(t.Context(), status.Version, table, nil, "ada", "a test"); err != nil {
		t.Fatal(err)
	}
	if ahead, back := offered(); ahead != 2 || back != 2 {
		t.Errorf("with one rule at old, %d can go ahead and %d back", ahead, back)
	}
}

func TestChangingTheRules(t *testing.T) {
	s := open(t)
	status := decode[switchover.Status](t, s.get("/switchover/status.json"))
	next := status.Table
	next.Rules = append([]switchover.Rule(nil), next.Rules...)
	next.Rules[0].Reads = switchover.PhaseNew
	change := func(version int64, table switchover.Table, actor, reason string) answer {
		text, err := json.Marshal(map[string]any{"version": version, "actor": actor, "reason": reason, "table": table})
		if err != nil {
			t.Fatal(err)
		}
		return s.post("/switchover/rules", string(text), jsonType, "*/*")
	}
	if a := change(status.Version, next, "ada", ""); a.status != 422 || !strings.Contains(a.body, `"field": "reason"`) {
		t.Errorf("unsigned: %+v", a)
	}
	if a := change(status.Version, switchover.Table{}, "ada", "x"); a.status != 422 || !strings.Contains(a.body, "must have no conditions") {
		t.Errorf("no rules: %+v", a)
	}
	if a := change(status.Version-1, next, "ada", "x"); a.status != 409 || !strings.Contains(a.body, `"present": {`) || !strings.Contains(a.body, "at version 2 by now") {
		t.Errorf("an old version: %+v", a)
	}
	if a := s.post("/switchover/rules", `{"version": 2, "tables": {}}`, jsonType, "*/*"); a.status != 400 {
		t.Errorf("an unknown member: %+v", a)
	}
	if after := s.moving.Status(t.Context()); after.Version != status.Version {
		t.Fatalf("one of them was taken: %+v", after)
	}
	a := change(status.Version, next, "ada", "all reads")
	if after := decode[switchover.Status](t, a); a.status != 200 || after.Version != 3 || after.Rules[0].Rule.Reads != switchover.PhaseNew {
		t.Errorf("%+v", a)
	}
	s.get("/switchover").contains(t, "webshop: reads new-compare → new", "all reads")
	history := decode[struct {
		History []struct {
			Version int64
			Actor   string
			Changes []string
		}
	}](t, s.get("/switchover/history.json")).History
	if len(history) != 3 || history[0].Version != 3 || history[0].Actor != "ada" || len(history[0].Changes) != 1 {
		t.Errorf("%+v", history)
	}
}

func TestKillAndRevive(t *testing.T) {
	s := open(t)
	if a := s.post("/switchover/kill", "actor=ada", formType, pageType); a.status != 422 || !strings.Contains(a.body, `<details class="do" open>`) {
		t.Errorf("without a reason: %+v", a)
	}
	if s.moving.Status(t.Context()).Killed != nil {
		t.Fatal("it was taken")
	}
	a := s.post("/switchover/kill", "actor=ada&reason=flags+get+lost", formType, pageType)
	if a.status != 303 || a.location != "/switchover?done=kill" {
		t.Errorf("%+v", a)
	}
	s.get(a.location).contains(t, "everything goes to current", "flags get lost", "Revive the rules", "kill switch thrown")
	a = s.post("/switchover/revive", `{"actor": "ada", "reason": "mended"}`, jsonType, "*/*")
	if decode[switchover.Status](t, a); a.status != 200 || s.moving.Status(t.Context()).Killed != nil {
		t.Errorf("%+v", a)
	}
}

// What holds needs no override.
func TestThePageOfAPlan(t *testing.T) {
	page := open(t).get("/switchover/plan?rule=webshop")
	page.contains(t, "Next step", `<span class="chip pass">holds</span>`)
	if strings.Contains(page.body, `name="despite"`) {
		t.Errorf("what holds can be overridden: %s", page.body)
	}
}
