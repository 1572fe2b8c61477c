// Package canary compares the responses of two trackers to the same calls and collects what differs. It gets calls after
// the client's response (upstream.Shadow), asks the other tracker from a bounded queue, confirms differences, and hands what it
// found to the verdict (docs/explanation/comparison.md).
package canary
