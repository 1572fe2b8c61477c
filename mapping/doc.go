// Package mapping is the vocabulary of Portico, the requests, replies, errors and dialects of interface.md, without any network I/O.
package mapping
