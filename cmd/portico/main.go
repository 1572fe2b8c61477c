// Command portico is a compatibility facade for Bugzilla-style trackers: it
// reads the configuration, builds the chain of rooms and runs it. It speaks the
// command line of DESIGN.md, section 12.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// The exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// environment is what a command gets from the process, so that tests can give
// it something else.
type environment struct {
	stdout, stderr io.Writer
	environ        []string
}

// command is one word after portico.
type command struct {
	name string
	// arguments is what follows the name in the usage line.
	arguments string
	// summary is one line for the overview, details the paragraph for its own
	// help.
	summary, details string
	// prepare adds the command's flags and returns what runs it once they are
	// parsed.
	prepare func(fs *flag.FlagSet) runner
}

// runner runs a command with the arguments behind its flags and returns its
// exit code. An error is printed; one that is a usageError with a hint.
type runner func(ctx context.Context, env environment, args []string) (int, error)

// commands is the table of all commands, in the order of the overview.
func commands() []command {
	return []command{
		serveCommand(),
		demoCommand(),
		trackerCommand(),
		checkCommand(),
		explainCommand(),
		cacheCommand(),
		canaryCommand(),
		migrateCommand(),
		recordCommand(),
		replayCommand(),
		versionCommand(),
	}
}

// usageError is a mistake of the caller on the command line.
type usageError struct{ message string }

// Error is the message for the caller.
func (e usageError) Error() string { return e.message }

func main() {
	env := environment{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	os.Exit(run(context.Background(), env, os.Args[1:]))
}

// run finds the command and runs it.
func run(ctx context.Context, env environment, args []string) int {
	if len(args) == 0 {
		overview(env.stderr)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(env, rest)
	case "-version", "--version":
		name = "version"
	}
	c, ok := findCommand(name)
	if !ok {
		fmt.Fprintf(env.stderr, "portico: there is no command %q%s\n", name, didYouMean(nearest(name, commandNames())))
		fmt.Fprintln(env.stderr, "Run portico help for the list.")
		return exitUsage
	}
	return c.run(ctx, env, rest)
}

// run parses the flags of a command and runs it.
func (c command) run(ctx context.Context, env environment, args []string) int {
	fs, do := c.flags(io.Discard)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		c.usage(env.stdout)
		return exitOK
	case err != nil:
		return c.misused(env, err)
	}
	code, err := do(ctx, env, fs.Args())
	var misuse usageError
	switch {
	case errors.As(err, &misuse):
		return c.misused(env, err)
	case err != nil:
		fmt.Fprintf(env.stderr, "portico %s: %v\n", c.name, err)
		return max(code, exitFailed)
	}
	return code
}

// misused reports a mistake on the command line.
func (c command) misused(env environment, err error) int {
	fmt.Fprintf(env.stderr, "portico %s: %v\nRun portico help %s for its flags.\n", c.name, err, c.name)
	return exitUsage
}

// flags builds the command's flag set.
func (c command) flags(output io.Writer) (*flag.FlagSet, runner) {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(output)
	fs.Usage = func() {}
	return fs, c.prepare(fs)
}

// findCommand looks a command up by its name.
func findCommand(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// commandNames lists the commands.
func commandNames() []string {
	names := []string{"help"}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// noArguments refuses words behind the flags.
func noArguments(args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Sprintf("does not know what to do with %q", strings.Join(args, " "))}
	}
	return nil
}
