// Package cache is a Tracker decorator that answers flag type reads from Redis and from memory, as section 6 of the design and upstream.Tracker say.
package cache
