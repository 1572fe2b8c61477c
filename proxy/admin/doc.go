// Package admin is the HTTP listener for operators: health checks, Prometheus metrics, the status as JSON and as a page, the
// JSON API of the cache, and the frame and access control for the pages of other packages.
package admin
