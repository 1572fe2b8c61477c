package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
)

// The exit statuses of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// The default addresses, which are those of the configuration: to ask it would take as long as the rest of a short command.
const (
	defaultListen      = "127.0.0.1:8080"
	defaultAdminListen = "127.0.0.1:9080"
)

// environment is what a command gets from the process, so that tests can replace it.
type environment struct {
	stdout, stderr io.Writer
	environ        []string
}

// variable finds a variable of the environment. One that is not set is empty.
func (e environment) variable(name string) string { return config.Environment(e.environ)(name) }

// exitError ends a command with a status of its own. Without a cause nothing is printed.
type exitError struct {
	status int
	cause  error
}

// Error implements error. It is the text of the cause, since a command may give the error of another step a status of its own.
func (e exitError) Error() string { return fmt.Sprint(e.cause) }

// usageError is a mistake on the command line.
func usageError(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format+"\nThe flag --help lists arguments and flags.", args...)}
}

func main() {
	floor := heapFloor() // first of all: memory that was used before would have to be cleared, and so be provided
	status := run(context.Background(), environment{os.Stdout, os.Stderr, os.Environ()}, os.Args[1:])
	runtime.KeepAlive(floor)
	os.Exit(status)
}

// run runs one command and returns its exit status.
func run(ctx context.Context, env environment, args []string) int {
	if env.variable("NO_COLOR") == "" && isTerminal(env.stdout) {
		env.stdout = coloured{env.stdout}
	}
	root := commandLine(env)
	root.SetArgs(longFlags(root, args))
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	exit := exitError{exitFailed, err}
	errors.As(err, &exit)
	if exit.cause != nil {
		fmt.Fprintf(env.stderr, "%s: %v\n", command.CommandPath(), exit.cause)
	}
	return exit.status
}

// commandLine builds the tree of all commands.
func commandLine(env environment) *cobra.Command {
	root := group(&cobra.Command{
		Use: "portico", Short: "compatibility facade for Bugzilla-style trackers", Version: app.ThisVersion(), SilenceErrors: true, SilenceUsage: true,
		Long: `Portico is a compatibility facade for Bugzilla-style trackers.

Flags may begin with one hyphen or two.
Exit codes: 0 it worked, 1 it did not, 2 the command line was wrong.`,
	},
		serveCommand(env), demoCommand(env), trackerCommand(env), checkCommand(env), configCommand(env), explainCommand(env), cacheCommand(env),
		canaryCommand(env), migrateCommand(env), recordCommand(env), replayCommand(env), healthCommand(env), versionCommand(env))
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(flagError)
	return root
}

// longFlags returns arguments in the form that pflag reads: it takes -config for six flags of one letter.
func longFlags(root *cobra.Command, args []string) []string {
	known := map[string]bool{"help": true, "version": true}
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for _, subcommand := range c.Commands() {
			collect(subcommand)
		}
	}
	collect(root)
	long := slices.Clone(args)
	for i, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if name, short := strings.CutPrefix(name, "-"); short && known[name] {
			long[i] = "-" + arg
		}
	}
	return long
}

// group makes a command of subcommands. Without one of them it is misused.
func group(c *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	c.AddCommand(subcommands...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		c.SetOut(c.ErrOrStderr())
		_ = c.Help() // it prints, and has no other way to fail
		return exitError{status: exitUsage}
	}
	return c
}

// unknownCommand is the error for a word that is no subcommand, with the one that was probably meant.
func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, subcommand := range c.Commands() {
		names = append(names, subcommand.Name())
	}
	return usageError("there is no command %q%s", word, config.DidYouMean(word, names))
}

// flagError is a mistake in a flag, with the flag that was probably meant where there is none of that name.
func flagError(c *cobra.Command, err error) error {
	meant := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		meant = config.DidYouMean(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	}
	return usageError("%w%s", err, meant)
}

// command makes a command. It takes one argument for each word of use between its name and its first flag.
func command(use, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	words, _, _ := strings.Cut(use, " -")
	return &cobra.Command{Use: use, Short: short, Args: takes(strings.Fields(words)[1:]), RunE: func(c *cobra.Command, args []string) error {
		return run(c.Context(), args)
	}}
}

// takes accepts one argument for each name and no others. The last ones may be missing if they are in brackets, and more
// arguments may follow one that ends in dots.
func takes(names []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch given := len(args); {
		case given < len(names) && !strings.HasPrefix(names[given], "["):
			return usageError("needs %s", strings.TrimSuffix(strings.Join(names[given:], " and "), "..."))
		case given > len(names) && !strings.HasSuffix(strings.Join(names, ""), "..."):
			return usageError("unexpected argument %q", strings.Join(args[len(names):], " "))
		}
		return nil
	}
}

// load reads the configuration that flags name and prints its problems. An error without a cause says that it cannot be used.
func load(flags *config.Flags, env environment) (config.Config, error) {
	cfg, problems, err := flags.Load(env.environ)
	if err != nil {
		return cfg, usageError("%w", err)
	}
	return cfg, env.tell(problems)
}

// tell prints problems. Its error, which has no cause, says that one of them is fatal.
func (e environment) tell(problems []config.Problem) error {
	for _, p := range problems {
		fmt.Fprintln(e.stderr, p)
	}
	if config.Fatal(problems) {
		return exitError{status: exitFailed}
	}
	return nil
}

// versionCommand is portico version.
func versionCommand(env environment) *cobra.Command {
	o := output{env: env}
	c := command("version", "print the version of this program", func(context.Context, []string) error {
		version := app.ThisVersion()
		return o.value(map[string]string{"version": version}, says("portico %s\n", version))
	})
	c.Long = "Print the version, the commit and the Go version that this program was built from."
	o.flags(c.Flags())
	return c
}
