package bugzilla

import (
	"testing"

	"portico/upstream"
)

func TestWhatASuccessProves(t *testing.T) {
	cookies := "Bugzilla_login=1; Bugzilla_logincookie=x"
	for name, c := range map[string]struct {
		shown       upstream.Credentials
		read, write bool
	}{
		"key":                     {upstream.Credentials{APIKey: "k"}, true, true},
		"bearer":                  {upstream.Credentials{APIKey: "k", Authorization: "Bearer k"}, false, true},
		"key and the same bearer": {upstream.Credentials{APIKey: "k", KeyTwice: true, Authorization: "Bearer k"}, true, true},
		"bearer of a gateway":     {upstream.Credentials{Authorization: "Bearer k"}, false, true},
		"key and other cookies":   {upstream.Credentials{APIKey: "k", Cookies: "theme=dark"}, true, true},
		"login":                   {upstream.Credentials{Login: "l", Password: "p"}, true, true},
		"token":                   {upstream.Credentials{Token: "1-t"}, true, true},
		"token that is none":      {upstream.Credentials{Token: "t-1"}, false, true},
		"cookies":                 {upstream.Credentials{Cookies: cookies}, false, true},
		"basic":                   {upstream.Credentials{Authorization: "Basic x"}, false, true},
		"key beside a login":      {upstream.Credentials{APIKey: "k", Login: "l", Password: "p"}, false, false},
		"key beside half of one":  {upstream.Credentials{APIKey: "k", Login: "l"}, false, false},
		"key beside cookies":      {upstream.Credentials{APIKey: "k", Cookies: cookies}, false, false},
		"key beside basic":        {upstream.Credentials{APIKey: "k", Authorization: "Basic x"}, false, false},
	} {
		if read, write := SuccessProves(c.shown, false), SuccessProves(c.shown, true); read != c.read || write != c.write {
			t.Errorf("%s: read %v, write %v", name, read, write)
		}
	}
}
