package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// confirmedIn finds the number in the sentence beside the chart.
var confirmedIn = regexp.MustCompile(`([\d,]+) confirmed`)

// TestNumbersOfTheOverviewAgree: figures, chart, table and list count the same, also after findings were judged.
func TestNumbersOfTheOverviewAgree(t *testing.T) {
	d := startDemo(t)
	var list struct {
		Findings []struct{ Signature, Operation, Status string }
	}
	d.get(d.Operators+"/canary/findings.json", &list)
	words := map[string]string{list.Findings[0].Signature: "fixed", list.Findings[1].Signature: "accept"}
	for signature, word := range words {
		form := url.Values{"actor": {"grace"}, "reason": {"A test."}}
		response, err := http.PostForm(d.Operators+"/canary/findings/"+signature+"/"+word, form)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", word, response.StatusCode)
		}
	}
	browser := openBrowser(t, d.Operators, look{width: 1280})
	browser.visit("/canary")
	figure := ask[string](browser, `[...document.querySelectorAll(".figures div")].find(d => d.innerText.includes("Confirmed different")).querySelector("dd").innerText`)
	sentence := browser.text("figcaption")
	if found := confirmedIn.FindStringSubmatch(sentence); found == nil || found[1] != figure {
		t.Errorf("the overview has %s confirmed, beside the chart stands %q", figure, sentence)
	}
	listed := ask[int](browser, `document.querySelectorAll("ol.list > li").length`)
	var verdict struct {
		Open int `json:"open_findings"`
	}
	d.get(d.Operators+"/canary/verdict.json", &verdict)
	section := browser.text("section[aria-labelledby=top]")
	if want := fmt.Sprintf("The %d most frequent of %d.", listed, verdict.Open); listed != verdict.Open && !strings.Contains(section, want) {
		t.Errorf("%d of %d findings are listed, and the page says %q", listed, verdict.Open, section)
	}
}
