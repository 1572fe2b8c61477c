// Package portico holds the files of the project that the program prints.
package portico

import _ "embed" // for the files

// ConfigExample is config.example.yaml: every key with its default and what it means.
//
//go:embed config.example.yaml
var ConfigExample string

// ConfigSchema is the JSON Schema of the configuration. A test of cmd/portico/config makes it of the types and their tags.
//
//go:embed docs/reference/config.schema.json
var ConfigSchema string
