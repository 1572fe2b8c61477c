// Package arch holds the tests that keep the shape of the project: who imports
// whom, how long a function is, what has a comment and what no file may say. It
// speaks ARCHITECTURE.md.
package arch
