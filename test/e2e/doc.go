// Package e2e proves the rooms together, from a client's socket to the reference tracker's, against interface.md.
package e2e
