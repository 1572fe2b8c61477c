// Package made is a comparison and a switchover with made-up data, for tests of the pages that show them.
package made
