// Package upstream is the contract that every tracker behind Portico fulfils, the seven operations of interface.md as a Go interface.
package upstream
