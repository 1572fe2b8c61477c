package app

import (
	"cmp"
	"context"
	"errors"
	"os"

	"portico/cmd/portico/config"
)

// reloadAt swaps the runtime at each SIGHUP for one of the configuration as it reads now, and keeps the current one if that has
// problems. It returns when ctx ends.
func (s *Service) reloadAt(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		err := s.rebuild(ctx)
		s.metrics.Reloaded(err)
		if err != nil {
			s.logger.Error("the configuration was not reloaded; the last good one stays", "cause", err)
		} else {
			s.logger.Info("configuration reloaded")
		}
	}
}

// rebuild reads the configuration again and builds a runtime of it. Keys that need a restart keep their values.
func (s *Service) rebuild(ctx context.Context) error {
	cfg, problems, err := s.Reload()
	if err != nil {
		return err
	}
	first := ""
	for _, problem := range problems { // in the form of the log, since programs may read it
		report, what := s.logger.Error, "the configuration has a problem"
		if problem.Warning {
			report, what = s.logger.Warn, "the configuration has a doubtful value"
		} else {
			first = cmp.Or(first, problem.String())
		}
		report(what, "problem", problem.String())
	}
	if first != "" {
		return errors.New("the configuration has problems; the first one: " + first)
	}
	needRestart := config.KeepUntilRestart(s.current().cfg, &cfg)
	if err := s.checkAccess(&cfg); err != nil {
		return err
	}
	if _, err := s.Build(ctx, cfg, needRestart...); err != nil {
		return err
	}
	if len(needRestart) > 0 {
		s.logger.Warn("changed keys need a restart; their former values stay", "keys", needRestart)
	}
	return s.level.UnmarshalText([]byte(cfg.Log.Level))
}
