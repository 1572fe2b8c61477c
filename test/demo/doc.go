// Package demo is what portico demo needs beside Portico and two reference trackers: the differences that it plants between them, and
// the requests of several clients.
package demo
