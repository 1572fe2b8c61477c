package main

import (
	"log/slog"
	"net/http"
	"slices"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/switchover"
)

// house is the chain of rooms that a request passes, built in the build_….go files
// and nowhere else.
type house struct {
	trackers map[string]*trackerRooms
	// store, canary and switchover are nil where there is one tracker only.
	store      *openStore
	canary     *canary.Canary
	switchover *switchover.Switchover
	front      *proxy.Server
	metrics    *admin.Metrics
	// tracing is nil where nothing is traced.
	tracing *tracing
	admin   *admin.Server
	// operators is admin with patience for its clients.
	operators http.Handler
	doors     doors
	// closers end what the rooms own, last opened first.
	closers []func()
}

// builder holds what building the rooms needs.
type builder struct {
	cfg    Config
	lookup func(string) (string, bool)
	logger *slog.Logger
	// lasting outlives a house.
	lasting *lasting
	house   house
}

// build makes all rooms of a configuration that Load found good. Whoever gets a
// house closes it.
func build(cfg Config, lookup func(string) (string, bool), logger *slog.Logger, lasting *lasting) (*house, error) {
	b := builder{cfg: cfg, lookup: lookup, logger: logger, lasting: lasting}
	b.house.metrics, b.house.trackers = admin.NewMetrics(), map[string]*trackerRooms{}
	steps := []func() error{b.certificates, b.followed, b.primary, b.twoTrackers, b.facade, b.operators}
	for _, step := range steps {
		if err := step(); err != nil {
			b.house.close()
			return nil, err
		}
	}
	return &b.house, nil
}

// closing notes what close has to do.
func (h *house) closing(end func()) { h.closers = append(h.closers, end) }

// close ends what the rooms own, in the order in which they lean on each other.
func (h *house) close() {
	for _, end := range slices.Backward(h.closers) {
		end()
	}
}

// primary builds what asks the primary tracker.
func (b *builder) primary() error {
	_, err := b.tracker(b.cfg.Primary)
	return err
}

// splitOptions are those for what is looked into, requests and answers alike.
func (b *builder) splitOptions() mapping.SplitOptions {
	return mapping.SplitOptions{Limits: b.bodyLimits(), Dir: b.cfg.Blobs.Dir}
}

// answerSplit are those for answers.
func (b *builder) answerSplit() mapping.SplitOptions {
	split := b.splitOptions()
	split.Limits = mapping.AnswerLimits(split.Limits.BlobMemory)
	return split
}

func (b *builder) bodyLimits() mapping.Limits {
	return mapping.Limits{Body: int64(b.cfg.Limits.Body), Depth: b.cfg.Limits.Depth, BlobMemory: int64(b.cfg.Blobs.Memory)}
}
