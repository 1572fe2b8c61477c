// Package browser proves the pages of the admin listener in a real browser, against issue 6: nothing but a headless Chromium
// and loopback is needed.
package browser
