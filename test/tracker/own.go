package tracker

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// ownEndpoint answers the endpoints that no real tracker has, under /_tracker/.
func (s *Server) ownEndpoint(w http.ResponseWriter, r *http.Request) bool {
	name, ok := strings.CutPrefix(r.URL.Path, "/_tracker/")
	if !ok {
		return false
	}
	switch r.Method + " " + name {
	case "GET journal":
		writeOwn(w, http.StatusOK, map[string]any{"journal": s.Journal()})
	case "GET requests":
		writeOwn(w, http.StatusOK, map[string]any{"requests": s.Requests()})
	case "POST reset":
		s.Reset()
		writeOwn(w, http.StatusOK, map[string]any{"reset": true})
	case "POST faults":
		replaceList(w, r, ParseFault, s.SetFaults)
	case "POST quirks":
		replaceList(w, r, ParseQuirk, s.SetQuirks)
	default:
		writeOwn(w, http.StatusNotFound, map[string]any{"problem": "no such endpoint: GET journal, GET requests, POST reset, POST faults, POST quirks"})
	}
	return true
}

// replaceList replaces a list by the items that a request names; none empties the list.
func replaceList[T any](w http.ResponseWriter, r *http.Request, parse func(string) (T, error), set func([]T)) {
	items, err := readList(r, parse)
	if err != nil {
		writeOwn(w, http.StatusBadRequest, map[string]any{"problem": err.Error()})
		return
	}
	set(items)
	_, name, _ := strings.Cut(r.URL.Path[1:], "/")
	writeOwn(w, http.StatusOK, map[string]any{name: len(items)})
}

// readList reads a body of one item a line, or a JSON array of strings.
func readList[T any](r *http.Request, parse func(string) (T, error)) ([]T, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	var lines []string
	if json.Unmarshal(raw, &lines) != nil {
		lines = strings.Split(string(raw), "\n")
	}
	var items []T
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		item, err := parse(line)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func writeOwn(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
