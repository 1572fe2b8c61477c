package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Setting is one value from outside the file: Path is the key, Source is how
// messages call its origin, such as --listen.
type Setting struct {
	Path, Value, Source string
}

// Load puts the configuration together: flags beat the environment beats the
// file beats the defaults. The environment is in the form of os.Environ; file
// may be empty. What is wrong is reported all at once; the Config is to be used
// only when none of the problems is an error.
func Load(flags []Setting, environ []string, file string) (Config, []Problem) {
	if file == "" {
		return load(flags, environ, "", strings.NewReader(""))
	}
	content, err := os.ReadFile(file)
	if err != nil {
		unreadable := Problem{Message: fmt.Sprintf("cannot be read: %v", err), origin: origin{source: file}}
		return Default(), []Problem{unreadable}
	}
	return load(flags, environ, file, bytes.NewReader(content))
}

// load is Load with the content of the file.
func load(flags []Setting, environ []string, file string, content io.Reader) (Config, []Problem) {
	cfg := Default()
	cfg.origins = map[string]origin{}
	if file != "" {
		cfg.origins[""] = origin{source: file, line: 1, column: 1} // one without content lacks things too
	}
	root := reflect.ValueOf(&cfg).Elem()
	w := &walker{
		problemList: problemList{origins: cfg.origins},
		file:        file,
		paths:       leafPaths(root.Type(), ""),
	}
	readable := w.document(content, root)
	settings, unknown := w.fromEnvironment(environ)
	for _, s := range slices.Concat(settings, flags) {
		w.apply(root, s)
	}
	w.unknownVariables(unknown, cfg.secretVariables()...)
	cfg.resolve()
	// Findings on a configuration that could not be read would only confuse.
	if readable {
		rules := problemList{origins: cfg.origins}
		validate(&cfg, &rules, environment{environ: environ}.variable)
		w.join(rules.problems)
	}
	return cfg, w.sorted()
}

// resolve fills in what follows from other values.
func (c *Config) resolve() {
	if c.Primary == "" && len(c.Trackers) == 1 {
		for name := range c.Trackers {
			c.Primary = name
		}
	}
	c.resolveRedis()
}

// resolveRedis leaves one of the two ways to Redis, where each was said by somebody else.
// The embedded server is only a default, and the environment beats the file.
func (c *Config) resolveRedis() {
	redis := &c.Cache.Redis
	if redis.URL == "" || len(redis.Addrs) == 0 {
		return
	}
	url, chosen := c.origins["cache.redis.url"]
	if !chosen {
		url, chosen = c.origins["cache.redis"]
	}
	addrs := c.origins["cache.redis.addrs"]
	switch inFile := func(o origin) bool { return o.line > 0 }; {
	case !chosen, inFile(url) && !inFile(addrs):
		redis.URL = ""
	case !inFile(url) && inFile(addrs):
		redis.Addrs = nil
	}
}

// apply sets one value from a flag or the environment.
func (w *walker) apply(root reflect.Value, s Setting) {
	o := origin{source: s.Source}
	if err := setPath(root, strings.Split(s.Path, "."), s.Value, ""); err != nil {
		w.at(o, s.Path, "%s", err)
		return
	}
	// The items of the list that the file had are gone.
	maps.DeleteFunc(w.origins, func(path string, _ origin) bool { return strings.HasPrefix(path, s.Path+"[") })
	w.origins[s.Path] = o
	if entry, named := w.entry(s.Path); named && w.origins[entry].source == "" {
		w.origins[entry] = o // nothing else made it, so what it lacks is lacking here
	}
}

// entry is the part of a path that ends with a name of the operator's choice, if there is one.
func (w *walker) entry(path string) (string, bool) {
	section, rest, _ := strings.Cut(path, ".")
	name, _, nested := strings.Cut(rest, ".")
	named := nested && slices.ContainsFunc(w.paths, func(p string) bool { return strings.HasPrefix(p, section+".*.") })
	return join(section, name), named
}

// setPath walks to the value that a path names and sets it. Entries of maps are
// made on the way.
func setPath(v reflect.Value, path []string, text string, tag reflect.StructTag) error {
	if len(path) == 0 {
		return setText(v, text, tag)
	}
	if v.Kind() == reflect.Map {
		key, entry := reflect.ValueOf(path[0]), newEntry(v.Type().Elem())
		if old := v.MapIndex(key); old.IsValid() {
			entry.Set(old)
		}
		if err := setPath(entry, path[1:], text, ""); err != nil {
			return err
		}
		v.SetMapIndex(key, entry)
		return nil
	}
	for _, f := range fieldsOf(v.Type()) {
		if f.key == path[0] {
			return setPath(v.Field(f.index), path[1:], text, f.tag)
		}
	}
	return fmt.Errorf("unknown key %q", path[0])
}

// envPrefix begins the name of every environment variable of Portico.
const envPrefix = "PORTICO_"

// envConfigFile names the configuration file where no flag does.
const envConfigFile = envPrefix + "CONFIG"

// serviceLink matches the variables that Kubernetes sets in every container for
// a Service that is called portico. They are no configuration.
var serviceLink = regexp.MustCompile(`^PORTICO(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// fromEnvironment turns PORTICO_… variables into settings, sections before the
// keys in them, and returns the names of those that match no key. An empty
// variable counts as unset.
func (w *walker) fromEnvironment(environ []string) (settings []Setting, unknown []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || name == envConfigFile || value == "" {
			continue
		}
		if path, ok := w.envPath(name); ok {
			settings = append(settings, Setting{Path: path, Value: value, Source: name})
		} else if !serviceLink.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.Path, b.Path) })
	return settings, unknown
}

// unknownVariables reports variables that match no key: each is a typing error
// that nobody would notice otherwise. Those that a key names as the place of a
// secret are known.
func (w *walker) unknownVariables(names []string, secrets ...string) {
	for _, name := range names {
		if !slices.Contains(secrets, name) {
			w.at(origin{source: name}, "", "no key has this name%s", didYouMean(nearest(name, w.envNames())))
		}
	}
}

// envName is the variable for a path.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// envNames lists the variables for all paths, with NAME for names of the
// operator's choice.
func (w *walker) envNames() []string {
	names := make([]string, len(w.paths))
	for i, p := range w.paths {
		names[i] = envName(strings.ReplaceAll(p, "*", "NAME"))
	}
	return names
}

// secretVariables are those that a key names as the place of a secret.
func (c *Config) secretVariables() []string {
	names := []string{c.Cache.SecretEnv, c.Cache.Redis.PasswordEnv, c.Admin.TokenEnv, c.Canary.ServiceKeyEnv, c.Traces.HeadersEnv}
	for _, caller := range c.Callers {
		names = append(names, caller.KeyEnv, caller.ShadowKeyEnv)
	}
	return names
}

// envPath finds the path that a variable stands for. Where the name of an entry
// could end in a part of the key, the longest key is meant: that no other two
// paths can be is checked by a test over all keys.
func (w *walker) envPath(name string) (string, bool) {
	found, longest := "", -1
	for _, p := range w.paths {
		before, after, named := strings.Cut(envName(p), "*")
		if !named {
			if name == before {
				return p, true
			}
			continue
		}
		entry, ok := strings.CutPrefix(name, before)
		if ok {
			entry, ok = strings.CutSuffix(entry, after)
		}
		entry = strings.ToLower(strings.ReplaceAll(entry, "_", "-"))
		if ok && entryName.MatchString(entry) && len(after) > longest {
			found, longest = strings.ReplaceAll(p, "*", entry), len(after)
		}
	}
	return found, longest >= 0
}
