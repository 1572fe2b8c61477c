// Package recording keeps exchanges between clients and a tracker in files of JSON lines (docs/reference/recordings.md), without the
// credentials in them, and replays them: byte for byte over a socket, to one tracker or to two.
package recording
