package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"portico/proxy/admin"
	"portico/proxy/admin/pages"
	"portico/test/browser/fixtures"
	"portico/test/process"
)

// serveMade serves the pages with made-up data and gives their base.
func serveMade(t *testing.T) (base string, found *fixtures.Canary) {
	t.Helper()
	now := time.Now()
	comparison, moving := fixtures.NewCanary(now), fixtures.NewSwitchover(now)
	recorded, err := fixtures.NewJournal(t.Context())
	process.Must(t, err)
	t.Cleanup(func() { _ = recorded.Close() })
	handler := admin.New(admin.Options{
		Metrics: admin.NewMetrics(), Status: func() admin.Status { return fixtures.NewStatus(now) }, Looked: func() {}, Unready: func() string { return "" },
		Pages: []admin.Page{
			pages.CanaryPages(comparison, comparison, pages.CanaryOptions{
				Trackers: map[string]string{"current": "http://127.0.0.1:8081/", "candidate": "http://127.0.0.1:8082/"},
			}),
			pages.SwitchoverPages(moving, fixtures.NewGate(moving), fixtures.Unpaired), pages.JournalPages(recorded),
		},
	})
	handler.SetReady(true)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, comparison
}

// looks are the windows that the pages are judged in.
func looks() []look {
	return []look{{width: 1400}, {width: 1400, dark: true}, {width: 400}, {width: 400, dark: true}}
}

func TestEveryPageInEveryLook(t *testing.T) {
	base, found := serveMade(t)
	report, _ := found.Report(t.Context())
	browser := openBrowser(t, base, looks()[0])
	for name, path := range map[string]string{
		"status": "/", "overview": "/canary", "findings": "/canary/findings?status=open", "all-findings": "/canary/findings",
		"finding": "/canary/findings/" + report.Findings[0].Signature, "finding-long": "/canary/findings/" + report.Findings[4].Signature,
		"rules": "/canary/rules", "switchover": "/switchover",
		"plan": "/switchover/plan?rule=webshop", "journal": "/journal", "entry": "/journal/1",
	} {
		for _, l := range looks() {
			browser.wear(l)
			browser.visit(path)
			browser.do("open what is folded", chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`))
			browser.check(name + " " + l.String())
			browser.picture(name + "-" + l.String())
		}
	}
}

// judgeOne goes from the overview to a finding and accepts it, and gives its address.
func judgeOne(t *testing.T, browser *tab) string {
	t.Helper()
	browser.visit("/canary")
	if verdict := browser.text(".verdict h2"); !strings.HasSuffix(verdict, "FAIL") {
		t.Fatalf("the verdict is %q", verdict)
	}
	browser.click("#top ~ .list a, .line + .list a", ".excerpt mark")
	browser.fill("#actor", "grace")
	browser.fill("#reason", "Clients of this field are gone.")
	browser.click("button.main", "#done")
	if said := browser.text("#done"); !strings.Contains(said, "Accepted") {
		t.Errorf("the confirmation says %q", said)
	}
	if status := browser.text(".figures .chip"); status != "accepted" {
		t.Errorf("the status is %q", status)
	}
	if judged := browser.text(".judged"); !strings.Contains(judged, "grace: “Clients of this field are gone.”") {
		t.Errorf("the judgement says %q", judged)
	}
	return ask[string](browser, "location.pathname")
}

func TestAcceptingWithTheKeyboardAlone(t *testing.T) {
	base, found := serveMade(t)
	report, _ := found.Report(t.Context())
	browser := openBrowser(t, base, look{width: 1280})
	browser.visit("/canary/findings/" + report.Findings[0].Signature)
	browser.press(kb.Tab)
	browser.press(kb.Enter)
	browser.press(kb.Tab)
	if !ask[bool](browser, `document.querySelector("main").contains(document.activeElement)`) {
		t.Error("the first stop does not lead past the menu")
	}
	browser.tabTo("actor")
	if ask[string](browser, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
		t.Error("one cannot see which field has the focus")
	}
	browser.press("grace")
	browser.tabTo("reason")
	browser.press("It is meant.")
	browser.tabTo("BUTTON Accept")
	browser.press(kb.Enter)
	browser.do("see the confirmation", chromedp.WaitVisible(chromedp.CSS("#done")))
	if report, _ := found.Report(t.Context()); report.Findings[0].Status != "accepted" || report.Findings[0].Reason != "It is meant." {
		t.Errorf("%+v", report.Findings[0])
	}
}

// TestSeveralAreJudged: the boxes select what the filters show, and the filters stay.
func TestSeveralAreJudged(t *testing.T) {
	base, found := serveMade(t)
	browser := openBrowser(t, base, look{width: 1280})
	browser.visit("/canary/findings")
	browser.do("choose", chromedp.SetValue(chromedp.CSS("#status"), "open"), chromedp.SetValue(chromedp.CSS("#caller"), "ci-bot"))
	browser.click(".filter button", ".filter a")
	browser.do("select all", chromedp.Click(chromedp.CSS("input[data-all]")))
	browser.click("details.do summary", "#actor")
	browser.fill("#actor", "grace")
	browser.fill("#reason", "Both are meant.")
	browser.click("button.main", "#done")
	if shown := ask[int](browser, `document.querySelectorAll("tbody tr").length`); shown != 0 || ask[string](browser, `document.querySelector("#caller").value`) != "ci-bot" {
		t.Errorf("%d findings of the caller are open", shown)
	}
	report, _ := found.Report(t.Context())
	for i, f := range report.Findings[:3] {
		if (f.Status == "accepted") != (i < 2) {
			t.Errorf("%+v", f)
		}
	}
}

// throwAndRevive throws the kill switch and takes it back, and lets look look after each.
func throwAndRevive(t *testing.T, browser *tab, old string, look func(killed bool)) {
	t.Helper()
	browser.visit("/switchover")
	browser.click("details.do summary", "#actor")
	browser.fill("#actor", "grace")
	browser.fill("#reason", "The candidate loses flags.")
	browser.click("button.danger", "#killed")
	if said := browser.text("#killed"); !strings.Contains(said, "everything goes to "+old) || !strings.Contains(said, "loses flags") {
		t.Errorf("it says %q", said)
	}
	look(true)
	browser.fill("#actor", "grace")
	browser.fill("#reason", "Mended.")
	browser.click("button.main", "details.do")
	if said := browser.text("#done"); !strings.Contains(said, "The rules are active again") {
		t.Errorf("it says %q", said)
	}
	look(false)
}

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
