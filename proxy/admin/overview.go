package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/proxy/admin/view"
)

// overview is the page at /: the status as tables.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	var members map[string]any
	text, err := json.Marshal(s.options.Status(r.Context()))
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		plain(w, http.StatusInternalServerError, "the status cannot be shown")
		return
	}
	data := overviewData{Ready: s.ready.Load()}
	_ = json.Unmarshal(text, &data) // other members are rows below
	if len(data.Traffic.Minutes) > 0 {
		data.Charts = charts(data.Traffic)
	}
	delete(members, "alarm") // shown above
	delete(members, "traffic")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		entry := statusEntry{inWords(name), members[name]}
		if _, isObject := entry.Value.(map[string]any); isObject || len(columnsOf(entry.Value)) > 0 {
			data.Groups = append(data.Groups, entry)
		} else {
			data.Plain = append(data.Plain, entry)
		}
	}
	Show(w, r, Sheet{Title: "Status", Templates: templates, Body: "overview.html", Data: data, Live: true})
}

// overviewData has the entries of one line, and the groups that need a table of their own.
type overviewData struct {
	Ready         bool          `json:"-"`
	Plain, Groups []statusEntry `json:"-"`
	// Alarm and Traffic are members of the status; nil and empty if it has none.
	Alarm   *Alarm
	Traffic Traffic
	// Charts show Traffic.
	Charts []view.Chart `json:"-"`
}

// charts draws the traffic of the last hour.
func charts(t Traffic) []view.Chart {
	var rate, errs, p95, p50, hits []float64
	for _, i := range t.Minutes {
		rate, errs, hits = append(rate, i.RequestsPerSecond), append(errs, i.ErrorRate), append(hits, i.CacheHitRate)
		p95, p50 = append(p95, i.P95Seconds), append(p50, i.P50Seconds)
	}
	perSecond := func(rate float64) string { return strconv.FormatFloat(rate, 'g', 3, 64) + " /s" }
	now := t.Latest
	return []view.Chart{
		view.NewChart("Requests", perSecond(now.RequestsPerSecond), minutesKept, .1, perSecond, rate),
		view.NewChart("Errors, status 5xx", view.Share(now.ErrorRate), minutesKept, .01, view.Share, errs),
		view.NewChart("Latency, p95 over p50", seconds(now.P95Seconds)+" / "+seconds(now.P50Seconds), minutesKept, .001, seconds, p95, p50),
		view.NewChart("Cache hits, flag types", view.Share(now.CacheHitRate), minutesKept, 1, view.Share, hits),
	}
}

// seconds writes a time with its unit.
func seconds(s float64) string { return view.Duration(time.Duration(s * float64(time.Second))) }

// moment returns the time that a text holds, zero if it holds none.
func moment(value any) time.Time {
	text, _ := value.(string)
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

type statusEntry struct {
	Name  string
	Value any
}

// columnsOf returns the members of a list of objects, so that it can be a table; none for anything else.
func columnsOf(value any) []string {
	list, _ := value.([]any)
	columns := map[string]any{}
	for _, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject {
			return nil
		}
		maps.Copy(columns, object)
	}
	return slices.Sorted(maps.Keys(columns))
}

// inWords makes a JSON name readable.
func inWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

// shown writes a scalar.
func shown(value any) string {
	switch x := value.(type) {
	case nil:
		return "none"
	case bool:
		return map[bool]string{true: "yes", false: "no"}[x]
	}
	return fmt.Sprint(value)
}
