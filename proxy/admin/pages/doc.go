// Package pages shows the comparison and the switchover on the listener for operators, as HTML pages and as JSON, and takes the
// changes that operators make there. The text of pages is in html; functions.go and the means of compare.Class have what depends on a value.
package pages
