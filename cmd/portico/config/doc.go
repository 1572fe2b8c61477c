// Package config is the typed configuration of Portico: strict decoding of the file, the environment and the flags, each problem with
// its position, validation, secrets, and printing (config.example.yaml).
package config
