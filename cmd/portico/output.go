package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"portico/cmd/portico/config"
)

// output prints the result of a command in the format that its flags choose.
type output struct {
	env environment
	// format is empty where no flag is given, which means text.
	format string
}

// flags adds --output and its older forms, --format and --json. more are formats that the command has beside text, JSON and YAML.
func (o *output) flags(flags *pflag.FlagSet, more ...string) {
	formats := append([]string{"text", "json", "yaml"}, more...)
	known := strings.Join(formats, ", ")
	choose := func(format string) error {
		switch {
		case !slices.Contains(formats, format):
			return fmt.Errorf("unknown format %q: use %s", format, known)
		case o.format != "" && o.format != format:
			return fmt.Errorf("the formats %s and %s contradict each other", o.format, format)
		}
		o.format = format
		return nil
	}
	flags.Func("output", "print the result as `FORMAT`: "+known+" (default text)", choose)
	flags.Func("format", "do as --output `FORMAT`", choose)
	flags.BoolFunc("json", "do as --output json", func(on string) error {
		if on == "false" {
			return nil
		}
		return choose("json")
	})
}

// isText reports whether the result is for people.
func (o *output) isText() bool { return o.format == "" || o.format == "text" }

// config prints a configuration: as JSON, or as YAML with the origin of each value.
func (o *output) config(cfg config.Config) error {
	var text bytes.Buffer
	if err := config.Print(&text, cfg); err != nil {
		return err
	}
	return o.document(text.Bytes())
}

// document prints YAML: as it is, or as JSON, which has no comments.
func (o *output) document(text []byte) error {
	var document map[string]any
	if o.format != "json" {
		_, err := o.env.stdout.Write(text)
		return err
	}
	return cmp.Or(yaml.Unmarshal(text, &document), o.value(document, nil))
}

// print prints JSON: as it is where the format is json or show is nil, as YAML, or else as show prints it, with columns that
// tabs separate aligned.
func (o *output) print(text []byte, show func(w io.Writer) error) error {
	switch {
	case o.format == "yaml":
		return o.yaml(text)
	case o.format == "json" || show == nil:
		_, err := o.env.stdout.Write(text)
		return err
	}
	table := tabwriter.NewWriter(o.env.stdout, 0, 0, 2, ' ', 0)
	return errors.Join(show(table), table.Flush())
}

// says prints a text, and columns that tabs separate aligned.
func says(format string, args ...any) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	}
}

// value prints a value as print does.
func (o *output) value(value any, show func(w io.Writer) error) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return o.print(append(text, '\n'), show)
}

// yaml prints JSON as YAML, in the same order.
func (o *output) yaml(text []byte) error {
	text, err := jsontext.AppendFormat(nil, text) // without escapes that YAML does not know
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	inBlocks(&document)
	encoder := yaml.NewEncoder(o.env.stdout)
	encoder.SetIndent(2)
	return encoder.Encode(&document)
}

// inBlocks takes the brackets and quotes of JSON from a YAML document.
func inBlocks(node *yaml.Node) {
	node.Style = 0
	for _, inner := range node.Content {
		inBlocks(inner)
	}
}

// isTerminal reports whether what is written is shown on a terminal.
func isTerminal(w io.Writer) bool {
	file, _ := w.(*os.File)
	about, err := file.Stat() // an error for nil
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

// coloured is a terminal that shows verdicts in colour.
type coloured struct{ io.Writer }

// verdictWord finds the word to colour, at the beginning of a line or of a cell.
var verdictWord = regexp.MustCompile(`(?m)^(?:(PASS)|(FAIL)|(INCONCLUSIVE))\b`)

// Write implements io.Writer.
func (c coloured) Write(text []byte) (int, error) {
	// An unmatched group is empty, so one of three colours is left around the word, and the others are around nothing.
	_, err := c.Writer.Write(verdictWord.ReplaceAll(text, []byte("\x1b[32m$1\x1b[31m$2\x1b[33m$3\x1b[0m")))
	return len(text), err
}
