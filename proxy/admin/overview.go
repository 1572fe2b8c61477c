package admin

import (
	"maps"
	"net/http"
	"slices"

	"portico/proxy/admin/view"
)

// overviewData is what the first page shows.
type overviewData struct {
	Status
	Names  []string // of trackers, the primary first
	Ready  bool
	Charts []view.Chart
}

// overview is the page at /: the status in words.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	now := s.options.Status()
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(now.Trackers)), func(name string) bool { return name == now.Primary })
	Show(w, r, Sheet{
		Title: "Status", Templates: templates, Body: "overview.html", Live: true,
		Data: overviewData{now, append([]string{now.Primary}, others...), s.ready.Load(), charts(now.Traffic)},
	})
}

// charts draws the traffic of the last hour.
func charts(t Traffic) []view.Chart {
	var rate, errs, p95, p50, hits []float64
	for _, i := range t.Minutes {
		rate, errs, hits = append(rate, i.RequestsPerSecond), append(errs, i.ErrorRate), append(hits, i.CacheHitRate)
		p95, p50 = append(p95, i.P95Seconds), append(p50, i.P50Seconds)
	}
	now := t.Latest
	return []view.Chart{
		view.NewChart("Requests", view.Rate(now.RequestsPerSecond), minutesKept, .1, view.Rate, rate),
		view.NewChart("Errors, status 5xx", view.Share(now.ErrorRate), minutesKept, .01, view.Share, errs),
		view.NewChart("Latency, p95 over p50", view.Seconds(now.P95Seconds)+" / "+view.Seconds(now.P50Seconds), minutesKept, .001, view.Seconds, p95, p50),
		view.NewChart("Cache hits, flag types", view.Share(now.CacheHitRate), minutesKept, 1, view.Share, hits),
	}
}
