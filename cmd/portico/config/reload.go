package config

import (
	"fmt"
	"reflect"
)

// KeepUntilRestart sets the keys of next that a reload does not take to their values in running. It lists those that differ, in
// the order of Config. A tracker that running uses stays; others may come and go. A listener that turns TLS on or off is listed by
// its cert_file.
func KeepUntilRestart(running Config, next *Config) (changed []string) {
	kept := map[string]reflect.Value{}
	walk("", reflect.ValueOf(running), "", func(k key) {
		if k.tag.Get("change") == "restart" {
			kept[k.path] = k.value
		}
	})
	walk("", reflect.ValueOf(next).Elem(), "", func(k key) {
		if value, known := kept[k.path]; known && fmt.Sprint(value) != fmt.Sprint(k.value) {
			changed = append(changed, k.path)
			k.value.Set(value)
		}
	})
	for name, former := range running.Trackers {
		if _, known := next.Trackers[name]; !known && (name == running.Primary || name == running.Candidate) {
			next.Trackers[name] = former
		}
	}
	if running.TLS.On() != next.TLS.On() {
		next.TLS, changed = running.TLS, append(changed, "tls.cert_file")
	}
	if running.Admin.TLS.On() != next.Admin.TLS.On() {
		next.Admin.TLS, changed = running.Admin.TLS, append(changed, "admin.tls.cert_file")
	}
	return changed
}
