// Package recording keeps exchanges between clients and a tracker in files of JSON lines (docs/recordings.md), without the
// credentials in them, and plays them again: byte for byte over a socket, against one tracker or two.
package recording
