// Package pages shows the comparison and the switchover on the listener for operators, as HTML pages and as JSON, and takes the
// changes that operators make there.
package pages
