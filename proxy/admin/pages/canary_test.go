package pages_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

func TestPagesOfTheComparison(t *testing.T) {
	s := open(t)
	for path, parts := range map[string][]string{
		"/canary": {"FAIL", "<li>attachment.get: 1.06 % of comparisons differ (limit 0.1 %)</li>", "<li>3 open findings must be judged</li>", "1,366", "flag_type.get",
			"8.4 ms", "rate-limit", `<a href="/canary/findings/` + signature + `">The most frequent finding</a>`, "1,204", "100 % of requests, 25 % of flag_type.get", "1 never hit, 1 expired", `aria-label="Compared: per minute.`,
			`aria-label="current: p95, with p50 in front: 38 ms / 8.9 ms. The height stands for 125 ms.`, `aria-label="candidate: p95, with p50 in front: 61 ms / 11.2 ms. The height stands for 125 ms.`},
		"/canary/findings":                          {"$.attachment[id].is_active", "missing", "accepted", "by grace", `<option value="open">open (3)</option>`},
		"/canary/findings?status=fixed&class=value": {"1 of 5", "Show all", `<option value="fixed" selected>`},
		"/canary/findings?class=plan":               {"No finding matches the filter."},
		"/canary/rules":                             {"time-within 2 s", "never hit", "expired", "grace", "Clients look for one value."},
		"/canary/findings/" + signature: {"<mark>&#34;is_active&#34;: true,</mark>", "<mark>&#34;is_active&#34;: 1,</mark>", "‹18 characters, #a41f09›", "GET /rest/flag_type/WebShop/Search%2FRanking",
			`&#39;http://current/bz/rest/flag_type/WebShop&#39;`, `Bugzilla_api_key=$API_KEY`, `name="reason"`},
	} {
		a := s.get(path)
		if a.status != 200 || a.kind != pageKind {
			t.Errorf("%s: %d %s", path, a.status, a.kind)
		}
		a.contains(t, parts...)
		if live := path == "/canary" || path == "/canary/rules"; strings.Contains(a.body, `"?refresh"`) != live {
			t.Errorf("%s offers to load itself again: %t", path, !live)
		}
		if strings.Contains(a.body, "ZgotmplZ") || strings.Contains(a.body, "<no value>") {
			t.Errorf("%s holds something that the template could not write", path)
		}
	}
}

// TestLatenciesOverTime: both trackers are drawn at one scale, so only the slower one reaches the top.
func TestLatenciesOverTime(t *testing.T) {
	body := open(t).get("/canary").body
	for label, top := range map[string]bool{"current: p95": false, "candidate: p95": true} {
		_, rest, _ := strings.Cut(body, `aria-label="`+label)
		chart, _, found := strings.Cut(rest, "</svg>")
		if !found || strings.Contains(chart, `height="100.0"`) != top || strings.Count(chart, "<rect ") != 2*45 {
			t.Errorf("%s: %s", label, chart)
		}
	}
}

func TestNothingFromOutsideIsMarkup(t *testing.T) {
	s := open(t)
	nasty := `"><script>alert(1)</script>`
	s.canary.SetReport(func(r *verdict.Report) {
		r.Pair.Compared, r.Campaign.Reason = nasty, nasty
		for i := range r.Findings {
			f := &r.Findings[i]
			f.Path, f.Note, f.Reason, f.Actor = f.Path+nasty, nasty, nasty, nasty
		}
		for i := range r.Rules {
			r.Rules[i].Name, r.Rules[i].Owner, r.Rules[i].Path, r.Rules[i].Pattern = nasty, nasty, nasty, nasty
		}
		r.Dropped = map[string]int64{nasty: 3}
	})
	for _, path := range []string{"/canary", "/canary/findings?status=" + "%22%3E%3Cscript%3E", "/canary/rules", "/canary/findings/" + signature, "/canary/%3Cscript%3E"} {
		if a := s.get(path); strings.Contains(a.body, "<script>") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestLongListIsCut(t *testing.T) {
	s := open(t)
	s.canary.SetReport(func(r *verdict.Report) {
		for range 600 {
			r.Findings = append(r.Findings, r.Findings[0])
		}
	})
	a := s.get("/canary/findings")
	a.contains(t, "605 · ", "And 105 more")
	if n := strings.Count(a.body, `<tr role="row">`); n != 501 {
		t.Errorf("%d rows", n)
	}
}

func TestComparisonAsData(t *testing.T) {
	s := open(t)
	report := decode[verdict.Report](t, s.get("/canary/report.json"))
	if report.Verdict != verdict.Fail || len(report.Findings) != 5 || report.Overall.Compared != 21712 {
		t.Errorf("%+v", report)
	}
	list := decode[struct{ Findings []state.Finding }](t, s.get("/canary/findings.json"))
	if len(list.Findings) != 5 || list.Findings[0].Signature != signature {
		t.Errorf("%+v", list)
	}
	one := decode[struct {
		Finding state.Finding
		Samples []struct{ Sample canary.SampleText }
	}](t, s.get("/canary/findings/"+signature+".json"))
	if one.Finding.Count != 214 || len(one.Samples) != 2 || string(one.Samples[0].Sample.Differences[0].Have) != "1" {
		t.Errorf("%+v", one)
	}
	if a := s.get("/canary/report.txt"); !strings.HasPrefix(a.body, "FAIL") || a.kind != "text/plain; charset=utf-8" {
		t.Errorf("%+v", a)
	}
	if a := s.get("/canary/report.xml"); !strings.Contains(a.body, "<testsuite") || a.kind != "application/xml; charset=utf-8" {
		t.Errorf("%+v", a)
	}
	s.canary.SetReport(func(r *verdict.Report) { *r = verdict.Report{Verdict: verdict.Inconclusive} })
	if a := s.get("/canary/findings.json"); !strings.Contains(a.body, `"findings": []`) {
		t.Errorf("no finding is %s", a.body)
	}
}

func TestVerdictAndGate(t *testing.T) {
	quiet := func(r *verdict.Report) { r.Findings, r.Overall.Confirmed, r.Overall.Rate = nil, 0, 0 }
	for _, c := range []struct {
		verdict        verdict.Verdict
		change         func(*verdict.Report)
		status, passed int
		exit           int
		reason, next   string
	}{
		{verdict.Fail, func(r *verdict.Report) {
			r.Overall.Reasons = []string{"the candidate is slower", "1 open finding must be judged"}
		}, 412, 0, 1,
			"the candidate is slower; 1 open finding must be judged", "look at the 3 open findings"},
		{verdict.Pass, func(r *verdict.Report) { quiet(r); r.Overall.Reasons = nil }, 200, 1, 0, "at 95 % confidence fewer than", "reads may move"},
		{verdict.Inconclusive, quiet, 503, 0, 2, "", "get 1,366 more comparisons"},
	} {
		s := open(t)
		s.canary.SetReport(func(r *verdict.Report) { r.Verdict = c.verdict; c.change(r) })
		type judged struct {
			Verdict      verdict.Verdict
			ExitCode     int `json:"exit_code"`
			Passed       int
			Reason, Next string
			Needed       int64
			Operations   map[mapping.Operation]verdict.Verdict
		}
		v := decode[judged](t, s.get("/canary/verdict.json"))
		if v.Verdict != c.verdict || v.Passed != c.passed || v.ExitCode != c.exit || !strings.Contains(v.Reason, c.reason) || !strings.Contains(v.Next, c.next) {
			t.Errorf("%s: %+v", c.verdict, v)
		}
		if v.Operations[mapping.OpAttachment] != verdict.Pass || v.Needed != 1366 {
			t.Errorf("%s: %+v", c.verdict, v)
		}
		a := s.post("/canary/gate", `{"name": "portico", "phase": "Progressing"}`, jsonType, "*/*")
		if a.status != c.status || decode[judged](t, a).Verdict != c.verdict {
			t.Errorf("the gate for %s: %d %s", c.verdict, a.status, a.body)
		}
		if a := s.get("/canary"); a.status != 200 || !strings.Contains(a.body, string(c.verdict)) {
			t.Errorf("the page for %s: %d", c.verdict, a.status)
		}
	}
}

func TestJudging(t *testing.T) {
	s := open(t)
	status := func() state.Finding {
		report, _ := s.canary.Report(t.Context())
		return report.Findings[0]
	}
	tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	a := s.post("/canary/findings/"+signature+"/accept", "actor=+ada+&reason=it+is+meant%0D%0Afor+good&until="+tomorrow, formType, pageType)
	if a.status != 303 || a.location != "/canary/findings/"+signature+"?done=accept" {
		t.Fatalf("%+v", a)
	}
	if f := status(); f.Status != "accepted" || f.Actor != "ada" || f.Reason != "it is meant\nfor good" || f.Until.Format(time.DateOnly) != time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly) {
		t.Errorf("%+v", f)
	}
	s.get(a.location).contains(t, `role="status"`, "Accepted.", "Reopen")
	a = s.post("/canary/findings/"+signature+"/reopen", `{"actor": "ada", "reason": "it is not"}`, jsonType, "*/*")
	if one := decode[struct{ Finding state.Finding }](t, a); a.status != 200 || one.Finding.Status != "open" {
		t.Errorf("%+v", a)
	}
	if a = s.post("/canary/findings/"+signature+"/fixed", "actor=ada&reason=5.4.1", formType, "*/*"); a.status != 200 || status().Status != "fixed" {
		t.Errorf("%+v %+v", a, status())
	}
}

func TestJudgementsThatCannotBeTaken(t *testing.T) {
	s := open(t)
	accept := "/canary/findings/" + signature + "/accept"
	for _, c := range []struct {
		path, body, kind string
		status           int
		say              string
	}{
		{accept, "", formType, 422, `"actor"`},
		{accept, "actor=+&reason=x", formType, 422, `"field": "actor"`},
		{accept, "actor=ada", formType, 422, `"field": "reason"`},
		{accept, "actor=ada&reason=" + strings.Repeat("x", 1001), formType, 422, "at most 1000"},
		{accept, "actor=" + strings.Repeat("x", 101) + "&reason=x", formType, 422, "at most 100 characters"},
		{accept, "actor=ada&reason=x&until=3651d", formType, 422, `"field": "until"`},
		{accept, "actor=ada&reason=x&until=yesterday", formType, 422, `"field": "until"`},
		{accept, "actor=ada&reason=x&until=2001-01-01", formType, 422, "in the past"},
		{accept, "actor=ada&reason=x&until=-1h", formType, 422, "in the past"},
		{accept, "actor=%zz", formType, 400, "form cannot be read"},
		{accept, "actor=ada&reason=" + strings.Repeat("x", 70<<10), formType, 413, "at most 65536 bytes"},
		{accept, `{"actor": "ada", "reason": "x", "ends": "48h"}`, jsonType, 400, "unknown field"},
		{accept, `{"actor": 1}`, jsonType, 400, "JSON cannot be read"},
		{accept, ``, jsonType, 400, "JSON cannot be read"},
		{"/canary/findings/0000/accept", "actor=ada&reason=x", formType, 404, "no such finding"},
		{"/canary/findings/" + signature + "/forget", "actor=ada&reason=x", formType, 404, "no judgement"},
		{"/canary/reset", "actor=ada", formType, 422, `"reason"`},
	} {
		a := s.post(c.path, c.body, c.kind, "*/*")
		if a.status != c.status || a.kind != jsonKind || !strings.Contains(a.body, c.say) || !strings.Contains(a.body, `"error"`) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, a.status, a.body)
		}
		if page := s.post(c.path, c.body, c.kind, pageType); page.status != c.status || page.kind != pageKind {
			t.Errorf("%s %.60s as a page: %d %s", c.path, c.body, page.status, page.kind)
		}
	}
	if report, _ := s.canary.Report(t.Context()); report.Findings[0].Status != "open" {
		t.Error("one of them was taken")
	}
	s.post(accept, "actor=ada&reason=&until=2001-01-01", formType, pageType).contains(t, `value="ada"`, `aria-invalid="true"`, `href="#reason"`, "in the past", `value="2001-01-01"`)
}

func TestUntil(t *testing.T) {
	s := open(t)
	now := time.Now().UTC()
	for until, want := range map[string]time.Time{
		"": {}, "48h": now.Add(48 * time.Hour), "30d": now.AddDate(0, 0, 30), "2999-12-31": time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC),
		"2999-12-31T12:00:00+02:00": time.Date(2999, 12, 31, 10, 0, 0, 0, time.UTC),
	} {
		body, _ := json.Marshal(map[string]string{"actor": "ada", "reason": strings.Repeat("é", 1000), "until": until})
		a := s.post("/canary/findings/"+signature+"/accept", string(body), jsonType, "*/*")
		got := decode[struct{ Finding state.Finding }](t, a).Finding.Until
		if d := got.Sub(want).Abs(); d > time.Minute {
			t.Errorf("%q ends %v, want %v", until, got, want)
		}
	}
}

func TestSamplingAndReset(t *testing.T) {
	s := open(t)
	a := s.post("/canary/sampling", `{"default": 0.5, "operations": {"attachment.get": 0.1}, "sticky": true}`, jsonType, "*/*")
	if now := s.canary.Sampling(); a.status != 200 || now.Default != 0.5 || now.Operations[mapping.OpAttachment] != 0.1 || !now.Sticky {
		t.Errorf("%+v %+v", a, now)
	}
	a = s.post("/canary/sampling", "percent=12.5", formType, pageType)
	if now := s.canary.Sampling(); a.status != 303 || now.Default != 0.125 || now.Operations[mapping.OpAttachment] != 0.1 {
		t.Errorf("%+v %+v", a, now)
	}
	s.get(a.location).contains(t, "12.5 % of callers, 10 % of attachment.get", "Changed.")
	s.post("/canary/sampling", `{"operations": {"attachment.list": 0.2}}`, jsonType, "*/*")
	if now := s.canary.Sampling(); now.Default != 0.125 || now.Operations[mapping.OpAttachment] != 0.1 || now.Operations[mapping.OpBugAttachments] != 0.2 || !now.Sticky {
		t.Errorf("what is missing does not stay as it is: %+v", now)
	}
	for body, status := range map[string]int{`{"default": 2}`: 422, `{"operations": {"bug.get": 1}}`: 422, `{"share": 1}`: 400} {
		if a := s.post("/canary/sampling", body, jsonType, "*/*"); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for _, body := range []string{"percent=", "percent=101", "percent=NaN"} {
		if a := s.post("/canary/sampling", body, formType, "*/*"); a.status != 422 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := s.post("/canary/reset", "actor=ada&reason=new+release", formType, pageType); a.status != 303 || a.location != "/canary?done=reset" {
		t.Errorf("%+v", a)
	}
	s.get("/canary").contains(t, "Nothing has been compared yet.", "begun by ada: new release", "There is nothing to draw yet.")
	s.get("/canary/findings").contains(t, "Nothing has been found yet.")
}

// What a path or a method has no page for is refused.
func TestWhatIsNoPage(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		method, path, takes string
		status              int
	}{
		{"GET", "/canary/nothing", "", 404}, {"GET", "/canary/findings/0000", "", 404}, {"GET", "/canary/findings/0000.json", "", 404},
		{"GET", "/canary/gate", "POST", 405}, {"POST", "/switchover", "GET, HEAD", 405},
	} {
		if a := ask(t, c.method, s.base+c.path, ""); a.status != c.status || a.takes != c.takes {
			t.Errorf("%s %s: %d %q %s", c.method, c.path, a.status, a.takes, a.body)
		}
	}
}

func TestSeveralFindingsAtOnce(t *testing.T) {
	s := open(t)
	report, _ := s.canary.Report(t.Context())
	a, b := report.Findings[0].Signature, report.Findings[1].Signature
	form := "signature=" + a + "&signature=" + b + "&actor=ada&reason=see+https://tickets.example/7%3Fa%3D1%26b,+please"
	if got := s.post("/canary/judgements/accept", form, formType, pageType); got.status != 303 || got.location != "/canary/findings?done=accept" {
		t.Errorf("%d %s %s", got.status, got.location, got.body)
	}
	report, _ = s.canary.Report(t.Context())
	for _, f := range report.Findings[:3] {
		if chosen := f.Signature == a || f.Signature == b; chosen != (f.Status == "accepted" && f.Actor == "ada") {
			t.Errorf("%+v", f)
		}
	}
	if got := s.post("/canary/judgements/fixed", `{"signatures": ["`+report.Findings[2].Signature+`"], "actor": "ada", "reason": "x"}`, jsonType, "*/*"); got.status != 200 {
		t.Errorf("as JSON: %d %s", got.status, got.body)
	}
	if report, _ := s.canary.Report(t.Context()); report.Findings[2].Status != "fixed" || report.Findings[0].Status != "accepted" {
		t.Errorf("as JSON: %+v", report.Findings)
	}
	s.get("/canary/findings").contains(t, `<a href="https://tickets.example/7?a=1&amp;b" rel="noreferrer">ticket</a>`, `name="signature" value="`+a+`"`)
	s.get("/canary/findings/"+a).contains(t, `<a href="https://tickets.example/7?a=1&amp;b" rel="noreferrer">Ticket</a>`)
	s.post("/canary/findings/"+b+"/accept", "actor=ada&reason=javascript:alert(1)+//x+ftp://x", formType, pageType)
	if page := s.get("/canary/findings/" + b); strings.Contains(page.body, ">Ticket<") || !strings.Contains(page.body, "javascript:alert(1)") {
		t.Errorf("only URLs of the web are tickets: %s", page.body)
	}
	for form, want := range map[string]string{"actor=ada&reason=x": "select at least one", "signature=" + a + "&actor=ada": "Say why", "signature=ffff&actor=a&reason=b": "no such finding"} {
		if got := s.post("/canary/judgements/fixed", form, formType, pageType); got.status < 400 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", form, got.status, got.body)
		}
	}
	if got := s.post("/canary/judgements/forget", form, formType, jsonType); got.status != 404 {
		t.Errorf("an unknown judgement: %d", got.status)
	}
}

// TestFilters: the page and the JSON choose alike, forms keep what was chosen, and so does the page after a judgement.
func TestFilters(t *testing.T) {
	s := open(t)
	for query, want := range map[string][]string{
		"":                                {"is_active", "description", "values", "p95", "setter"},
		"?path=is_act":                    {"is_active"},
		"?status=accepted":                {"p95"},
		"?operation=attachment.list":      {"setter"},
		"?class=missing&status=open":      {"description"},
		"?caller=ci-bot":                  {"is_active", "description"},
		"?product=WebShop":                {"is_active", "description"},
		"?caller=ci-bot&product=WebShop":  {"is_active"}, // the other one was seen for each of them apart
		"?caller=anonymous&path=is_act":   {},
		"?class=plan":                     {},
		"?caller=%3Cb%3E&done=accept&x=y": {},
	} {
		list := decode[struct{ Findings []state.Finding }](t, s.get("/canary/findings.json"+query)).Findings
		page := s.get("/canary/findings" + query)
		if n := strings.Count(page.body, `name="signature"`); len(list) != len(want) || n != len(want) {
			t.Errorf("%s: %d findings as data, %d on the page, want %q", query, len(list), n, want)
			continue
		}
		for i, f := range list {
			if strings.Contains(query, "product=") && slices.ContainsFunc(f.Scopes, func(s state.Scope) bool { return s.Product != "WebShop" }) {
				t.Errorf("%s: the scopes are %+v", query, f.Scopes)
			}
			if !strings.HasSuffix(f.Path, want[i]) || !strings.Contains(page.body, `value="`+f.Signature+`"`) {
				t.Errorf("%s: finding %d is %s, want %s", query, i, f.Path, want[i])
			}
		}
	}
	for query, want := range map[string]string{"class=none": "plan", "status=shut": "accepted", "operation=flag_type": "flag_type.get"} {
		for _, path := range []string{"/canary/findings?", "/canary/findings.json?"} {
			if a := s.get(path + query); a.status != 400 || !strings.Contains(a.body, "There is no ") || !strings.Contains(a.body, want) {
				t.Errorf("%s%s: %d %s", path, query, a.status, a.body)
			}
		}
	}
	s.get("/canary/findings?caller=ci-bot&path=is_act").contains(t, "1 of 5", "Show all", `<option value="ci-bot" selected>ci-bot (2)</option>`, `value="is_act"`,
		`"/canary/findings.json?caller=ci-bot&amp;path=is_act"`, `action="/canary/judgements/accept?caller=ci-bot&amp;path=is_act"`)
	const judge = "/canary/judgements/accept?caller=ci-bot&path=is_act"
	s.post(judge, "signature="+signature+"&actor=ada", formType, pageType).contains(t, "Say why", "1 of 5", `value="`+signature+`" aria-label="Select $.attachment[id].is_active" checked>`)
	if a := s.post(judge, "signature="+signature+"&actor=ada&reason=x", formType, pageType); a.status != 303 || a.location != "/canary/findings?done=accept&caller=ci-bot&path=is_act" {
		t.Errorf("%d %s", a.status, a.location)
	}
	s.get("/canary/findings/"+signature).contains(t, "ci-bot", "WebShop", "Docs")
}
