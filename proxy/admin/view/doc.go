// Package view renders the HTML of the operators' pages: templates in the syntax of text/template, charts, and the functions that
// all pages share. It parses with text/template/parse and executes the tree itself, since text/template in a program keeps all
// methods of all types in the binary.
package view
