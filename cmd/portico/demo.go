package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"portico/test/tracker"
)

// demoCommand is portico demo.
func demoCommand() command {
	return command{
		name:      "demo",
		arguments: "[--listen ADDR] [--admin-listen ADDR]",
		summary:   "run everything in one process, with made-up data",
		details: "Start a reference tracker with made-up data, an embedded Redis server and Portico in\n" +
			"front of them, and print commands to try.",
		prepare: func(fs *flag.FlagSet) runner {
			cfg := Default()
			cfg.Log.Level = "warn"
			fs.StringVar(&cfg.Listen, "listen", cfg.Listen, "listen for clients on `ADDR`")
			fs.StringVar(&cfg.Admin.Listen, "admin-listen", cfg.Admin.Listen, "listen for operators on `ADDR`")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				found := &problemList{}
				if validateServing(&cfg, found, env.variable); fatal(found.problems) {
					return exitUsage, usageError{found.problems[0].String()}
				}
				if err := demo(ctx, env, cfg); err != nil {
					return exitFailed, err
				}
				return exitOK, nil
			}
		},
	}
}

// demo runs a reference tracker beside serve.
func demo(ctx context.Context, env environment, cfg Config) error {
	server := tracker.New(tracker.Options{Seed: tracker.SeedDemo})
	defer func() { _ = server.Close() }()
	logger := newLogger(env.stderr, cfg.Log)
	behind, err := listen("the reference tracker", "127.0.0.1:0", server, cfg, logger)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- behind.run() }()
	main := TrackerConfig{URL: address(behind) + "/"}
	main.SetDefaults()
	cfg.Trackers = map[string]TrackerConfig{"main": main}
	cfg.Primary = "main"
	host := facade{env: env, cfg: cfg, started: func(p *program) { printTour(env.stdout, behind, p) }}
	failed := host.serve(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := behind.close(closing); failed == nil {
		failed = err
	}
	if err := <-ended; failed == nil {
		failed = err
	}
	return failed
}

// printTour prints what can be tried. All of it works as it stands.
func printTour(w io.Writer, behind *listener, p *program) {
	clients, operators := address(p.listeners[0]), address(p.listeners[1])
	fmt.Fprintf(w, `Portico is at %[1]s, its operators' side at %[2]s,
and behind it a reference tracker at %[3]s. Try, in another terminal:

# flag types of a product, twice: the second answer comes from the cache
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status
curl -si %[1]s/rest/flag_type/WebShop | grep -i -e ^HTTP -e ^Cache-Status

# a component with a slash in its name, which the tracker itself refuses
curl -s %[3]s/rest/flag_type/WebShop/Search%%2FRanking | head -c 100; echo
curl -s %[1]s/rest/flag_type/WebShop/Search%%2FRanking

# a flag type with a list of addresses, an object of components, and a key in a header
curl -s -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"name":"qa","description":"checked","cc_list":["qa@example.com"],"inclusions":{"WebShop":["Search/Ranking"]}}'

# an attachment, and what became of it
curl -s -X POST %[1]s/rest/bug/1/attachment -H 'X-BUGZILLA-API-KEY: %[4]s' \
  -d '{"ids":[1,2],"data":"aGVsbG8K","file_name":"hello.txt","summary":"hello","content_type":"text/plain"}'
curl -s '%[1]s/rest/bug/1/attachment?include_fields=id,file_name,data'

# something that cannot be right is refused before the tracker sees it
curl -si -X POST %[1]s/rest/flag_type -H 'X-BUGZILLA-API-KEY: %[4]s' -d '{"name":"qa","description":"d","sortkey":0}'

# what an operator sees
curl -s %[2]s/status

Stop it with Ctrl-C.
`, clients, operators, address(behind), demoKey("editor"))
}

// demoKey finds the API key of a user of the demo by the part of the login
// before the @.
func demoKey(user string) string {
	for login, key := range tracker.Keys(tracker.SeedDemo) {
		if name, _, _ := strings.Cut(login, "@"); name == user {
			return key
		}
	}
	return ""
}
