// Package canary compares what two trackers answer to the same call and judges from it whether one may take the other's place (DESIGN.md, section 9).
package canary
