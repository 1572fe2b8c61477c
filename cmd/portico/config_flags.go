package main

import (
	"errors"
	"flag"
	"strings"
)

// configFlags are the flags of every command that needs a configuration.
type configFlags struct {
	file     string
	settings []Setting
	tracker  bool
}

// registerConfigFlags adds the flags to a command's set.
func registerConfigFlags(fs *flag.FlagSet) *configFlags {
	c := &configFlags{}
	fs.StringVar(&c.file, "config", "", "read the configuration from `FILE` (or $"+envConfigFile+")")
	fs.Func("tracker", "stand in front of the tracker at `URL`, in place of a configuration file", func(value string) error {
		c.tracker = true
		return c.add("trackers.main.url", "--tracker")(value)
	})
	fs.Func("redis", "cache in Redis at `URL`, or embedded", c.add("cache.redis", "--redis"))
	fs.Func("listen", "listen for clients on `ADDR`", c.add("listen", "--listen"))
	fs.Func("admin-listen", "listen for operators on `ADDR`", c.add("admin.listen", "--admin-listen"))
	return c
}

// add returns a flag's function, which notes the setting for later.
func (c *configFlags) add(path, source string) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("needs a value")
		}
		c.settings = append(c.settings, Setting{Path: path, Value: value, Source: source})
		return nil
	}
}

// errTwoSources tells a caller who names a file and a tracker to choose.
var errTwoSources = errors.New("--config and --tracker exclude each other: the file names its trackers")

// load puts the configuration together once the flags are parsed. An error is
// one of usage; what is wrong in the configuration is in the problems.
func (c *configFlags) load(environ []string) (Config, []Problem, error) {
	file := c.file
	if c.tracker && file != "" {
		return Config{}, nil, errTwoSources
	}
	if file == "" && !c.tracker {
		file = lookup(environ, envConfigFile)
	}
	cfg, problems := Load(c.settings, environ, file)
	return cfg, problems, nil
}

// lookup finds a variable in an environment of the form of os.Environ; the last
// entry counts, as it does for os/exec.
func lookup(environ []string, name string) string {
	found := ""
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value
		}
	}
	return found
}
