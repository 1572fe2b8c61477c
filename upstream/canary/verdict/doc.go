// Package verdict judges from counted comparisons and findings whether a candidate may take the place of the tracker that
// responds to clients, and writes the report as text and JUnit (docs/explanation/comparison.md, The verdict). It does no I/O of its own.
package verdict
