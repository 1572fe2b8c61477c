// Package fuzz lists the malformed and odd requests that a client can send, and the one answer that Portico gives to each; its tests send them over sockets.
package fuzz
