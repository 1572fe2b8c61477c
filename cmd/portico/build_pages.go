package main

import (
	"net"

	"portico/proxy/admin"
	"portico/proxy/admin/pages"
)

// pages are those of two trackers; without a second one they say that there is none.
func (b *builder) pages() []admin.Page {
	if b.house.canary == nil {
		return []admin.Page{pages.Absent("/canary"), pages.Absent("/switchover")}
	}
	known := pages.CanaryOptions{Facade: b.facadeURL(), Trackers: map[string]string{}, Switchover: true}
	for name, t := range b.house.trackers {
		known.Trackers[name] = redactURL(t.settings.URL)
	}
	return []admin.Page{
		pages.CanaryPages(b.house.canary, b.house.store, known),
		pages.SwitchoverPages(b.house.switchover),
	}
}

// facadeURL is where clients reach Portico, as far as the configuration tells it.
func (b *builder) facadeURL() string {
	host, port, err := net.SplitHostPort(b.cfg.Listen)
	if err != nil || port == "0" || everyHost(host) {
		return ""
	}
	if b.cfg.TLS.on() {
		return "https://" + b.cfg.Listen
	}
	return "http://" + b.cfg.Listen
}
