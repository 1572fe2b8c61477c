// Package pages shows the comparison and the switchover on the admin listener, as pages and as JSON, and takes the changes
// that people make there (DESIGN.md, sections 9 to 11).
package pages
