package main

import (
	"context"

	"github.com/spf13/cobra"

	files "portico"
	"portico/cmd/portico/config"
)

// configCommand is portico config.
func configCommand(env environment) *cobra.Command {
	var flags *config.Flags
	o := output{env: env}
	printing := func(name, short string, print func() error) *cobra.Command {
		c := command(name, short, func(context.Context, []string) error { return print() })
		o.flags(c.Flags())
		return c
	}
	show := printing("print --config FILE | --tracker URL", "print the effective configuration", func() error {
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		return o.config(cfg)
	})
	show.Long = `Print the configuration with all defaults, and the origin of each value that is not a default.
Names and passwords in URLs are left out. portico check --print does the same after more checks.
As text it is YAML; JSON has no origins.`
	flags = config.RegisterFlags(show.Flags())
	return group(&cobra.Command{
		Use: "config", Short: "print the example configuration, its JSON Schema or the effective configuration",
		Long: `Print what is needed to write a configuration. Editors with a YAML language server use the schema
for completion and checks.`,
	},
		printing("example", "print the example configuration: every key with its default and what it means", func() error {
			return o.document([]byte(files.ConfigExample))
		}),
		printing("schema", "print the JSON Schema (2020-12) of the configuration", func() error {
			return o.print([]byte(files.ConfigSchema), nil)
		}), show)
}
