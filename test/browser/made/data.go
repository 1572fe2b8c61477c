package made

import (
	"time"

	"portico/mapping"
	"portico/upstream/canary"
)

func report(now time.Time) canary.Report {
	r := canary.Report{
		At: now, Campaign: canary.CampaignView{Started: now.Add(-48 * time.Minute), Actor: "ada", Reason: "release 5.4 of the candidate"},
		Pair: pair(), Verdict: canary.Fail, Target: 0.001, Findings: findings(now), Rules: rules(now),
		Operations: []canary.OperationVerdict{
			operation(mapping.OpFlagTypes, canary.Fail, 14_208, 231, quantiles(8.4, 21, 40), quantiles(9.1, 24, 55)),
			operation(mapping.OpBugAttachments, canary.Inconclusive, 1_630, 0, quantiles(14.2, 61, 140), quantiles(15, 70, 160)),
			operation(mapping.OpAttachment, canary.Pass, 5_874, 0, quantiles(3.3, 9.8, 31), quantiles(6.1, 18, 62)),
		},
		Dropped: map[string]int64{"queue-full": 118, "rate-limit": 1_204, "other-breaker-open": 9},
	}
	r.Overall = operation("", canary.Fail, 21_712, 231, canary.Quantiles{}, canary.Quantiles{})
	r.Operations[1].Needed, r.Overall.Needed = 1_366, 1_366
	for i := range 47 {
		p := canary.TimePoint{At: now.Truncate(time.Minute).Add(time.Duration(i-46) * time.Minute), Compared: int64(380 + 160*((i*7)%5) - 6*i)}
		if i > 12 && i%3 != 0 {
			p.Confirmed = int64(4 + (i*5)%9)
		}
		if i == 30 || i == 31 {
			p.Compared, p.Confirmed, p.Dropped = 0, 0, 300
		}
		r.Timeline = append(r.Timeline, p)
	}
	return r
}

func operation(name mapping.Operation, verdict canary.Verdict, compared, confirmed int64, answered, other canary.Quantiles) canary.OperationVerdict {
	o := canary.OperationVerdict{
		Operation: name, Verdict: verdict, Compared: compared, Confirmed: confirmed, Transient: compared / 900, Noisy: compared / 300,
		Rate: float64(confirmed) / float64(compared), UpperBound: (float64(confirmed) + 3) / float64(compared), Answered: answered, Other: other,
	}
	if answered.P50 > 0 {
		o.Ratio = float64(other.P50) / float64(answered.P50)
	}
	return o
}

// quantiles takes milliseconds.
func quantiles(p50, p95, p99 float64) canary.Quantiles {
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	return canary.Quantiles{P50: ms(p50), P95: ms(p95), P99: ms(p99)}
}

func findings(now time.Time) []canary.FindingView {
	list := []canary.FindingView{
		{Class: canary.ClassType, Path: "$.attachment[id].is_active", Count: 214, Note: "A boolean became a number."},
		{Class: canary.ClassMissing, Path: "$.bug[id].description", Count: 12},
		{Class: canary.ClassOrder, Path: "$.attachment[id].values", Count: 5},
		{Operation: mapping.OpAttachment, Class: canary.ClassLatency, Path: "p95", Kind: "latency", Count: 1, Status: "accepted", Actor: "ada", Reason: "The candidate runs on the small machine until Friday.", Until: now.Add(72 * time.Hour)},
		{Operation: mapping.OpBugAttachments, Class: canary.ClassValue, Path: "$.bugs[*][id].flags[id].a_rather_long_member_name_that_an_extension_adds.setter", Count: 3, Status: "fixed", Actor: "grace", Reason: "Fixed in 5.4.1."},
	}
	for i := range list {
		f := &list[i]
		f.First, f.Last, f.Samples = now.Add(-40*time.Minute), now.Add(-time.Duration(i)*time.Minute), 0
		if f.Operation == "" {
			f.Operation = mapping.OpFlagTypes
		}
		if f.Kind == "" {
			f.Kind = "reply"
		}
		if f.Status == "" {
			f.Status = "open"
		}
		f.Signature = canary.Difference{Class: f.Class, Path: f.Path}.Signature(f.Operation)
	}
	list[0].Samples = len(sampleTexts())
	return list
}

func rules(now time.Time) []canary.RuleView {
	return []canary.RuleView{
		{Equivalence: canary.Equivalence{Name: "clock of the candidate", Type: canary.TimeWithin, Path: "$.bugs[*][id].last_change_time", Within: 2 * time.Second, Owner: "ada", Reason: "Its clock is behind.", Expires: now.AddDate(0, 1, 0)}, State: canary.RuleActive, Hits: 1204, Last: now},
		{Equivalence: canary.Equivalence{Name: "order of values", Type: canary.Set, Operation: mapping.OpFlagTypes, Path: "$.*[id].values", Owner: "grace", Reason: "Clients look for one value.", Expires: now.AddDate(0, 0, -3)}, State: canary.RuleExpired, Hits: 18, Last: now.AddDate(0, 0, -4)},
		{Equivalence: canary.Equivalence{Name: "host of links", Type: canary.URLHost, Path: "**", Owner: "ada", Reason: "Links name the host."}, State: canary.RuleUnused},
	}
}

// sampleTexts are samples of the first finding, as upstream/canary keeps them.
func sampleTexts() []string {
	return []string{
		`{"method":"GET","target":"/rest/flag_type/WebShop/Search%2FRanking","answered_status":200,"other_status":200,
		"differences":[{"class":"type","path":"$.attachment[id].is_active","pointer":"$.attachment[3].is_active","want":true,"have":1},
		{"class":"order","path":"$.attachment[id].values","pointer":"$.attachment[3].values","want":["X","?","+","-"],"have":["X","+","?","-"]}],
		"answered":{"id":3,"name":"ui-review","type":"attachment","description":{"text":{"length":18,"digest":"a41f09"}},"values":["X","?","+","-"],"is_requesteeble":true,"is_multiplicable":true,"is_active":true,"sortkey":20},
		"other":{"id":3,"name":"ui-review","type":"attachment","description":{"text":{"length":18,"digest":"a41f09"}},"values":["X","+","?","-"],"is_requesteeble":true,"is_multiplicable":true,"is_active":1}}`,
		`{"method":"GET","target":"/rest/flag_type/WebShop","answered_status":200,"other_status":200,
		"differences":[{"class":"type","path":"$.attachment[id].is_active","pointer":"$.attachment[1].is_active","want":true,"have":1}],
		"answered":{"id":1,"name":"review","is_active":true},"other":{"id":1,"name":"review","is_active":1,"extension":{"groups":["a","b"]}}}`,
	}
}
