// Package upstreamtest is the contract of upstream.Tracker as a test suite, over the fixture of tracker-behaviour.md section 13.
package upstreamtest
