package config

import (
	"cmp"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"portico/upstream/switchover"
)

// Setting is one value from outside the file: Path is the key, Source is what messages call its origin, such as --listen.
type Setting struct {
	Path, Value, Source string
}

// Flags are the flags of every command that needs a configuration.
type Flags struct {
	// File is the configuration file.
	File string
	// Settings are the keys that flags set.
	Settings []Setting
}

// RegisterFlags adds the flags to the set of a command, which fills them when it parses the command line.
func RegisterFlags(set interface {
	StringVar(value *string, name, preset, usage string)
	Func(name, usage string, set func(string) error)
}) *Flags {
	f := &Flags{}
	set.StringVar(&f.File, "config", "", "read the configuration from `FILE` (or $"+envConfigFile+")")
	for _, flag := range []struct{ name, path, usage string }{
		{"tracker", trackerFlag, "stand in front of the tracker at `URL`, in place of a configuration file"},
		{"redis", "cache.redis", "cache in Redis at `URL`, or embedded"},
		{"listen", "listen", "listen for clients on `ADDR`"},
		{"admin-listen", "admin.listen", "listen for operators on `ADDR`"},
	} {
		set.Func(flag.name, flag.usage, func(value string) error {
			f.Settings = append(f.Settings, Setting{flag.path, value, "--" + flag.name})
			return nil
		})
	}
	return f
}

// trackerFlag is the key that --tracker sets.
const trackerFlag = "trackers.main.url"

// Tracker reports whether a flag names the tracker.
func (f *Flags) Tracker() bool {
	return slices.ContainsFunc(f.Settings, func(s Setting) bool { return s.Path == trackerFlag })
}

// Load is the function Load for the flags. An error is one of usage; mistakes in the configuration are in the problems.
func (f *Flags) Load(environ []string) (Config, []Problem, error) {
	file := f.File
	if f.Tracker() && file != "" {
		return Config{}, nil, errors.New("--config and --tracker exclude each other: the file names its trackers")
	}
	if file == "" && !f.Tracker() {
		file = Environment(environ)(envConfigFile)
	}
	cfg, problems := Load(f.Settings, environ, file)
	return cfg, problems, nil
}

// Load puts the configuration together: flags beat the environment beats the file beats the defaults. The environment is in the
// form of os.Environ, where an empty variable counts as unset; file may be empty. All problems are reported at once; the Config
// is to be used only when none of them is Fatal.
func Load(flags []Setting, environ []string, file string) (Config, []Problem) {
	cfg := Default()
	cfg.origins = map[string]origin{}
	d := &decoder{problems: problems{origins: cfg.origins}, source: file, paths: textPaths()}
	readable := true
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			d.at(origin{source: file}, "", "cannot be read: %v", err)
			return cfg, d.list
		}
		readable = d.document(content, reflect.ValueOf(&cfg).Elem())
	}
	d.environment(environ, &cfg)
	for _, s := range flags {
		d.set(s, &cfg)
	}
	if names := SortedKeys(cfg.Trackers); len(names) == 1 {
		cfg.Primary = cmp.Or(cfg.Primary, names[0])
	}
	// Problems of a configuration that could not be read would only confuse.
	if !readable {
		return cfg, d.sorted(nil)
	}
	return cfg, d.sorted(cfg.Problems(Environment(environ)))
}

// LoadRules reads a file of rules: the keys passthrough and rules of the section switchover. callers are the names that rules
// may use; nil leaves them unchecked.
func LoadRules(file string, content []byte, callers []string) (switchover.Table, []Problem) {
	rules := Defaults[switchover.RuleFile]()
	d := &decoder{problems: problems{origins: map[string]origin{}}, source: file}
	if !d.document(content, reflect.ValueOf(&rules).Elem()) {
		return switchover.Table{}, d.sorted(nil)
	}
	if len(rules.Rules) == 0 {
		d.errorf("rules", "is empty: the last rule, without conditions, has to be there")
	}
	if callers == nil {
		for _, rule := range rules.Rules {
			callers = append(callers, rule.Callers...)
		}
	}
	found := problems{origins: d.origins}
	found.rules("", rules, callers)
	return rules.Table(), d.sorted(found.list)
}

// set sets one value from a flag or the environment. Addresses of Redis take the place of the URL in the file or the defaults, and a URL
// that of addresses.
func (d *decoder) set(s Setting, cfg *Config) {
	if s.Path == "cache.redis.addrs" {
		cfg.Cache.Redis.URL = ""
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.Value}
	for _, key := range slices.Backward(strings.Split(strings.Replace(s.Path, "redis.url", "redis", 1), ".")) {
		n = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, n}}
	}
	d.source = s.Source
	d.value("", n, reflect.ValueOf(cfg).Elem(), "")
}

// envPrefix begins the name of every environment variable of Portico.
const envPrefix = "PORTICO_"

// envConfigFile names the configuration file where no flag does.
const envConfigFile = envPrefix + "CONFIG"

// serviceLink matches the variables that Kubernetes sets in every container for a Service that is called portico. They are no
// configuration.
var serviceLink = regexp.MustCompile(`^PORTICO(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Environment looks up variables in an environment of the form of os.Environ, where the last entry counts, as it does for os/exec.
func Environment(environ []string) Variables {
	return func(name string) (found string) {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				found = value
			}
		}
		return found
	}
}

// environment sets the keys of PORTICO_… variables, sections before the keys in them. It reports variables that match no key, as
// each is probably a typing error, except those that a key names as the place of a secret.
func (d *decoder) environment(environ []string, cfg *Config) {
	var unknown, known []string
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || name == envConfigFile || value == "" || serviceLink.MatchString(name) {
			continue
		}
		if path := d.envPath(name); path != "" {
			d.set(Setting{path, value, name}, cfg)
		} else {
			unknown = append(unknown, name)
		}
	}
	walk("", reflect.ValueOf(*cfg), "", func(k key) {
		if secret, ok := reflect.TypeAssert[Secret](k.value); ok {
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == secret.Env })
		}
	})
	for _, path := range d.paths {
		known = append(known, envName(strings.ReplaceAll(path, "*", "main")))
	}
	for _, name := range unknown {
		d.at(origin{source: name}, "", "no key has this name%s", DidYouMean(name, known))
	}
}

// envName is the variable for a path.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// envPath finds the path that a variable stands for, or "". Where the name of an entry could end in a part of the key, the longest
// key is meant: a test over all keys checks that no other two paths can be.
func (d *decoder) envPath(name string) string {
	path, entry := "", ""
	for _, p := range d.paths {
		pattern := regexp.MustCompile("^" + strings.Replace(envName(p), "*", "([A-Z][A-Z0-9_]{0,31})", 1) + "$")
		if m := pattern.FindStringSubmatch(name); m != nil && len(p) > len(path) {
			path, entry = p, m[len(m)-1]
		}
	}
	return strings.ReplaceAll(path, "*", strings.ToLower(strings.ReplaceAll(entry, "_", "-")))
}
