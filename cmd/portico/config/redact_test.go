package config

import "testing"

func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"embedded":                        "embedded",
		"sqlite:portico.db":               "sqlite:portico.db",
		"https://host/~me@home/?a=b&c=d":  "https://host/~me@home/?a=REDACTED&c=REDACTED",
		"https://me:hunter2@host/":        "https://REDACTED@host/",
		"https://hunter2@host/":           "https://REDACTED@host/",
		"127.0.0.1:9080":                  "127.0.0.1:9080",
		"//me:hunter2@host/":              "REDACTED",
		"hunter2@host":                    "REDACTED",
		"me:hunter2@host":                 "REDACTED",
		"https://me:hunter2@ho st/":       "REDACTED",
		"redis://host/?password=hunter2;": "redis://host/",
	} {
		if got := RedactURL(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
