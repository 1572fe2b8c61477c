package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
)

// demo is the program with its two trackers, which differ.
type demo struct {
	t *testing.T
	*process.Facade
}

// startDemo runs the program and reads through it until the comparison has found something. The answers of clients come
// first, so what was found comes a while later.
func startDemo(t *testing.T) demo {
	t.Helper()
	d := demo{t, process.Serve(t, nil, "demo")}
	process.Eventually(t, "the comparison finds something", func() bool {
		for _, path := range []string{"/rest/flag_type/WebShop", "/rest/bug/1/attachment", "/rest/bug/attachment/1"} {
			d.get(d.Clients+path, nil)
		}
		var verdict struct {
			Verdict string
			Open    int `json:"open_findings"`
		}
		d.get(d.Operators+"/canary/verdict.json", &verdict)
		return verdict.Verdict == "FAIL" && verdict.Open > 5
	})
	return d
}

// get reads JSON.
func (d demo) get(url string, into any) {
	d.t.Helper()
	response, err := http.Get(url)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		d.t.Fatalf("GET %s: %v: %s", url, err, text)
	}
}

// finding is what a script is told of one.
type finding struct {
	Finding struct{ Status, Actor, Reason, Until string }
	Samples []any
}

// TestRealProgram looks at the demo: at its pages, first, and at what operators change.
func TestRealProgram(t *testing.T) {
	d := startDemo(t)
	t.Run("pages", d.showPages)
	t.Run("from the overview to accepting a finding", d.judgeFindings)
	t.Run("kill switch", d.throwKillSwitch)
}

func (d demo) judgeFindings(t *testing.T) {
	for name, l := range map[string]look{"wide": {width: 1280}, "narrow, without scripts": {width: 400, noScript: true, dark: true}} {
		t.Run(name, func(t *testing.T) {
			browser := openBrowser(t, d.Operators, l)
			path := judgeOne(t, browser)
			var judged finding
			d.get(d.Operators+path+".json", &judged)
			if f := judged.Finding; f.Status != "accepted" || f.Actor != "grace" || f.Reason != "Clients of this field are gone." || f.Until == "" || len(judged.Samples) == 0 {
				t.Errorf("%+v", judged)
			}
			browser.fill("#actor", "ada")
			browser.fill("#reason", "They are not.")
			browser.click("button.main", ".figures .chip.open")
			path = judgeOne(t, browser)
			browser.visit("/canary")
			if first := ask[string](browser, `document.querySelector(".list a").pathname`); first == path {
				t.Error("the accepted finding is still the first of the open ones")
			}
		})
	}
}

func (d demo) showPages(t *testing.T) {
	var list struct {
		Findings []struct{ Signature, Class string }
	}
	d.get(d.Operators+"/canary/findings.json", &list)
	paths := map[string]string{"real-status": "/", "real-demo": "/demo", "real-overview": "/canary", "real-findings": "/canary/findings", "real-rules": "/canary/rules", "real-switchover": "/switchover"}
	for _, f := range list.Findings {
		paths["real-finding-"+f.Class] = "/canary/findings/" + f.Signature
	}
	browser := openBrowser(t, d.Operators, looks()[0])
	for name, path := range paths {
		for _, l := range []look{{width: 1400}, {width: 400, dark: true}} { // the pages with made-up data have more
			browser.wear(l)
			browser.visit(path)
			browser.check(name + " " + l.String())
			browser.picture(name + "-" + l.String())
		}
	}
}

func (d demo) throwKillSwitch(t *testing.T) {
	browser := openBrowser(t, d.Operators, look{width: 400, noScript: true})
	throwAndRevive(t, browser, "main", func(killed bool) {
		var status struct {
			Killed *struct{ Actor, Reason string }
		}
		if killed {
			browser.check("killed")
			browser.picture("killed")
		}
		d.get(d.Operators+"/switchover/status.json", &status)
		if (status.Killed != nil) != killed || killed && status.Killed.Reason != "The candidate loses flags." {
			t.Errorf("the program says %+v", status.Killed)
		}
	})
	var history struct{ History []struct{ Actor string } }
	d.get(d.Operators+"/switchover/history.json", &history)
	if len(history.History) != 3 || !strings.Contains(browser.text("#history, section:last-of-type"), "grace") {
		t.Errorf("the history is %+v", history)
	}
}
