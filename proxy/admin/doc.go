// Package admin is the second listener, for operators: health, metrics, status and the pages that people look at
// (DESIGN.md, section 11).
package admin
