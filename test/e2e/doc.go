// Package e2e tests all of Portico before a reference tracker: what clients can rely on as tables of promises, each with steps that show it,
// and over real processes what limits, outages and replicas do to it.
package e2e
