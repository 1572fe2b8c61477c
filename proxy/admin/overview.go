package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/proxy/admin/view"
)

// overview is the page at /: the status as tables.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	var state any
	text, err := json.Marshal(s.options.Status(r.Context()))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		plain(w, http.StatusInternalServerError, "the status cannot be shown")
		return
	}
	data := overviewData{Ready: s.ready.Load()}
	_ = json.Unmarshal(text, &data) // it is an object or it has no such members
	if len(data.Traffic.Minutes) > 0 {
		data.Charts, data.Span = charts(data.Traffic), seconds(math.Round(data.Traffic.Latest.Seconds))
	}
	members, isObject := state.(map[string]any)
	if !isObject {
		members = map[string]any{"status": state}
	}
	delete(members, "alarm") // shown above
	delete(members, "traffic")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		entry := statusEntry{Name: inWords(name), Value: members[name]}
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
	// Charts show Traffic, with figures of the latest Span.
	Charts []view.Chart `json:"-"`
	Span   string       `json:"-"`
}

// charts draws the traffic of the last hour.
func charts(t Traffic) []view.Chart {
	draw := func(title, now string, floor float64, write func(float64) string, figures ...func(Interval) float64) view.Chart {
		layers := make([][]float64, len(figures))
		for i, figure := range figures {
			for _, minute := range t.Minutes {
				layers[i] = append(layers[i], figure(minute))
			}
		}
		return view.NewChart(title, now, minutesKept, floor, write, layers...)
	}
	perSecond := func(rate float64) string { return strconv.FormatFloat(rate, 'g', 3, 64) + " /s" }
	now := t.Latest
	return []view.Chart{
		draw("Requests", perSecond(now.RequestsPerSecond), .1, perSecond, func(i Interval) float64 { return i.RequestsPerSecond }),
		draw("Errors, status 5xx", view.Share(now.ErrorRate), .01, view.Share, func(i Interval) float64 { return i.ErrorRate }),
		draw("Latency, p95 over p50", seconds(now.P95Seconds)+" / "+seconds(now.P50Seconds), .001, seconds,
			func(i Interval) float64 { return i.P95Seconds }, func(i Interval) float64 { return i.P50Seconds }),
		draw("Cache hits, flag types", view.Share(now.CacheHitRate), 1, view.Share, func(i Interval) float64 { return i.CacheHitRate }),
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

// isObjects reports whether a value is an object of objects.
func isObjects(value any) bool {
	object, _ := value.(map[string]any)
	for _, inner := range object {
		if _, isObject := inner.(map[string]any); !isObject {
			return false
		}
	}
	return len(object) > 0
}

// columnsOf returns the members of a list of objects, so that it can be a table; none for anything else.
func columnsOf(value any) []string {
	list, _ := value.([]any)
	columns := map[string]bool{}
	for _, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject {
			return nil
		}
		for name := range object {
			columns[name] = true
		}
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
