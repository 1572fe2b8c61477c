package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
)

// stage serves the house that is current, and lets each house finish what it
// began before it is closed.
type stage struct {
	mu      sync.RWMutex
	current *tenant
	leaving sync.WaitGroup
}

// tenant is a house with the number of requests that are in it.
type tenant struct {
	rooms *house
	busy  sync.WaitGroup
}

func newStage(rooms *house) *stage { return &stage{current: &tenant{rooms: rooms}} }

// enter gives the current house and keeps it open until leave is called.
func (s *stage) enter() (rooms *house, leave func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.current.busy.Add(1)
	return s.current.rooms, s.current.busy.Done
}

// front serves clients.
func (s *stage) front() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rooms, leave := s.enter()
		defer leave()
		rooms.front.ServeHTTP(w, r)
	})
}

// back serves operators.
func (s *stage) back() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rooms, leave := s.enter()
		defer leave()
		rooms.operators.ServeHTTP(w, r)
	})
}

// setReady tells the current house whether clients should be sent here.
func (s *stage) setReady(ready bool) {
	rooms, leave := s.enter()
	defer leave()
	rooms.admin.SetReady(ready)
}

// swap makes another house the current one. The former is closed when its last
// request is over.
func (s *stage) swap(rooms *house) {
	rooms.admin.SetReady(true)
	s.mu.Lock()
	former := s.current
	s.current = &tenant{rooms: rooms}
	s.mu.Unlock()
	s.leaving.Go(func() {
		former.busy.Wait()
		former.rooms.close()
	})
}

// close ends all houses.
func (s *stage) close() {
	s.current.busy.Wait()
	s.current.rooms.close()
	s.leaving.Wait()
}

// reloadOnHangup swaps the house at each SIGHUP for one of the configuration as
// it reads now, and keeps the present one when that is not good. It ends with ctx.
func reloadOnHangup(ctx context.Context, hangups <-chan os.Signal, s *stage, again func() (*house, error), logger *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		rooms, err := again()
		if err != nil {
			logger.Error("the configuration was not reloaded; the last good one stays", "cause", err)
			continue
		}
		s.swap(rooms)
		logger.Info("configuration reloaded")
	}
}
