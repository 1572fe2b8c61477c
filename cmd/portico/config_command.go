package main

import (
	"io"

	"github.com/spf13/cobra"

	files "portico"
	"portico/cmd/portico/config"
)

// configCommand is portico config.
func configCommand(env environment) *cobra.Command {
	text := func(name, short, text string) *cobra.Command {
		return &cobra.Command{Use: name, Args: takes(nil), Short: short, RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(env.stdout, text)
			return err
		}}
	}
	show := &cobra.Command{
		Use: "print --config FILE | --tracker URL", Args: takes(nil), Short: "print the effective configuration",
		Long: "Print the configuration with all defaults, and the origin of each value that is not a default.\n" +
			"Names and passwords in URLs are left out. portico check --print does the same after more checks.",
	}
	flags := config.RegisterFlags(show.Flags())
	show.RunE = func(*cobra.Command, []string) error {
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		return config.Print(env.stdout, cfg)
	}
	return group(&cobra.Command{
		Use: "config", Short: "print the example configuration, its JSON Schema or the effective configuration",
		Long: "Print what is needed to write a configuration. Editors with a YAML language server use the schema\n" +
			"for completion and checks.",
	},
		text("example", "print the example configuration: every key with its default and what it means", files.ConfigExample),
		text("schema", "print the JSON Schema (2020-12) of the configuration", files.ConfigSchema), show)
}
