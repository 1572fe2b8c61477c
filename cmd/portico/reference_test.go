package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var (
	updateReference = flag.Bool("update", false, "write docs/reference/cli.md")
	manual          = flag.String("man", "", "write the manual pages into this folder")
)

// referencePage writes a command and those below it as Markdown.
func referencePage(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	about := c.Long
	if about == "" {
		about = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	fmt.Fprintf(b, "%s\n\n```text\n%s\n", about, c.UseLine())
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n%s", flags)
	}
	b.WriteString("```\n")
	if c.HasInheritedFlags() {
		fmt.Fprintf(b, "\nIt takes the flags of `%s` too.\n", c.Parent().CommandPath())
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			referencePage(b, below)
		}
	}
}

// completeCommandLine is the command line as users have it, with help and completion.
func completeCommandLine() *cobra.Command {
	root := commandLine(environment{})
	root.InitDefaultCompletionCmd("completion")
	root.DisableAutoGenTag = true
	return root
}

// TestReference: docs/reference/cli.md is what the commands say of themselves.
func TestReference(t *testing.T) {
	const page = "../../docs/reference/cli.md"
	var b strings.Builder
	b.WriteString("# Command line\n\nThis page lists all commands and their flags. It is generated from the program: " +
		"`go test ./cmd/portico -run TestReference -update` writes it.\n\n" +
		"A flag counts more than a variable of the environment (`PORTICO_…`), and that more than the configuration file.\n" +
		"`make man` writes the same as manual pages. `portico completion` prints completions for shells.\n" +
		"Verdicts are in colour on a terminal, unless the variable `NO_COLOR` is set.\n")
	referencePage(&b, completeCommandLine())
	if *updateReference {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != b.String() {
		t.Errorf("%s is not what the commands say (%v); write it with: go test ./cmd/portico -run TestReference -update", page, err)
	}
}

// TestManual writes a manual page for each command.
func TestManual(t *testing.T) {
	folder := *manual
	if folder == "" {
		folder = t.TempDir()
	}
	if err := doc.GenManTree(completeCommandLine(), &doc.GenManHeader{Section: "1", Source: "Portico", Manual: "Portico"}, folder); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{"portico.1": ".SH SEE ALSO", "portico-canary-show.1": "portico canary show SIGNATURE", "portico-health.1": `\fB--timeout\fP=3s`} {
		if text, err := os.ReadFile(filepath.Join(folder, page)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q (%v):\n%s", page, want, err, text)
		}
	}
}
