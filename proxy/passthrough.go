package proxy

import "net/http"

// Passthrough says what happens to requests outside the seven operations.
type Passthrough struct{}

func (p Passthrough) check() error { return nil }

func (p Passthrough) allows(string) bool { return false }

func (s *Server) passthrough() http.Handler { return http.NotFoundHandler() }
