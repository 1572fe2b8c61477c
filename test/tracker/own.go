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
		s.postFaults(w, r)
	default:
		writeOwn(w, http.StatusNotFound, map[string]any{"problem": "no such endpoint: GET journal, GET requests, POST reset, POST faults"})
	}
	return true
}

// postFaults takes one fault a line, or a JSON array of them; nothing clears the list.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		writeOwn(w, http.StatusBadRequest, map[string]any{"problem": err.Error()})
		return
	}
	var lines []string
	if json.Unmarshal(raw, &lines) != nil {
		lines = strings.Split(string(raw), "\n")
	}
	var faults []Fault
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f, err := ParseFault(line)
		if err != nil {
			writeOwn(w, http.StatusBadRequest, map[string]any{"problem": err.Error()})
			return
		}
		faults = append(faults, f)
	}
	s.SetFaults(faults)
	writeOwn(w, http.StatusOK, map[string]any{"faults": len(faults)})
}

func writeOwn(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
