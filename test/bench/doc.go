// Bench measures Portico as a process against nginx in the same run, and prints ratios; it speaks docs/benchmarks.md.
package main
