// Package e2e tests all components together, from a client's socket to the reference tracker's, against interface.md.
package e2e
