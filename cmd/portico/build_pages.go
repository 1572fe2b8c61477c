package main

import "portico/proxy/admin"

// pages are those of two trackers; without a second one there are none.
func (b *builder) pages() []admin.Page { return nil }
