package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// help prints the overview, or the help of one command.
func help(env environment, args []string) int {
	if len(args) == 0 {
		overview(env.stdout)
		return exitOK
	}
	c, ok := findCommand(args[0])
	if !ok {
		fmt.Fprintf(env.stderr, "portico help: there is no command %q%s\n", args[0], didYouMean(nearest(args[0], commandNames())))
		return exitUsage
	}
	c.usage(env.stdout)
	return exitOK
}

// overview prints what there is.
func overview(w io.Writer) {
	fmt.Fprint(w, "Portico stands in front of a Bugzilla-style tracker and keeps its interface true.\n\n"+
		"Usage: portico COMMAND [flags]\n\nCommands:\n")
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.summary)
	}
	fmt.Fprintf(table, "  help\tprint this, or with a command's name its flags\n")
	table.Flush()
	fmt.Fprint(w, "\nExit codes: 0 it worked, 1 it did not, 2 the command line was wrong.\n")
}

// usage prints the help of one command.
func (c command) usage(w io.Writer) {
	fs, _ := c.flags(w)
	fmt.Fprintf(w, "Usage: %s\n\n%s\n", strings.TrimSpace("portico "+c.name+" "+c.arguments), c.details)
	first := true
	fs.VisitAll(func(f *flag.Flag) {
		if first {
			fmt.Fprint(w, "\nFlags:\n")
			first = false
		}
		name, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %s\n        %s%s\n", strings.TrimSpace("--"+f.Name+" "+name), text, defaultText(f))
	})
}

// defaultText is the default of a flag where it tells the reader something.
func defaultText(f *flag.Flag) string {
	if f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0" {
		return ""
	}
	return " (default " + f.DefValue + ")"
}
