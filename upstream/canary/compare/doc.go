// Package compare finds what differs between two replies to the same call (docs/explanation/comparison.md). It does no I/O. Differences have
// classes, objects in arrays are matched by their ids, long bodies are compared by digest, and typed equivalence rules say which
// differences are accepted. What is stored of a difference is redacted here, too.
package compare
