// Bench measures Portico as a process beside nginx, HAProxy and Go's plain reverse proxy in the same run, and prints medians and ratios.
// docs/benchmarks.md describes the experiments.
package main
