package proxy_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"portico/mapping/jsonblob"
	"portico/proxy"
)

// Bodies that are being read share one amount of memory, and small ones need none of it.
func TestBodiesShareMemory(t *testing.T) {
	const half = 600 << 10
	for name, c := range map[string]struct{ kind, open, large, small string }{
		"JSON": {"application/json", `{"name":"n","description":"`, `{"name":"n","x":"` + strings.Repeat("b", half) + `","description":"d"}`, flagTypeBody},
		"form": {"application/x-www-form-urlencoded", `name=n&description=`, `name=n&description=d&x=` + strings.Repeat("b", half), `name=n&description=d`},
	} {
		t.Run(name, func(t *testing.T) {
			options := proxy.Options{}
			options.Limits.Memory = 1 << 20
			base := serve(t, options)
			post := func(body string) reply {
				return ask(t, "POST", base+"/rest/flag_type", body, "Content-Type", c.kind, "X-Bugzilla-Api-Key", "k")
			}
			var client *kept
			refused := until(t, func() (reply, bool) {
				if client == nil || client.responded() { // another one's body was there first
					client = dial(t, base)
					fmt.Fprintf(client, "POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nX-Bugzilla-Api-Key: k\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\n%s%s",
						c.kind, c.open, strings.Repeat("b", half))
				}
				got := post(c.large)
				return got, got.status == 503
			})
			refused.wantError(t, 503, "200503")
			if refused.header.Get("Portico-Error") != "overload" || refused.header.Get("Retry-After") != "1" {
				t.Errorf("headers %v", refused.header)
			}
			if got := post(c.small); got.status >= 300 {
				t.Errorf("a small request got %d %s", got.status, got.body)
			}
			_ = client.Close()
			until(t, func() (reply, bool) { got := post(c.large); return got, got.status != 503 })
		})
	}
}

// responded reports whether a response has come already.
func (k *kept) responded() bool {
	_ = k.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := k.reader.Peek(1)
	return err == nil
}

const flagTypeBody = `{"name":"n","description":"d"}`

// until asks again until a response is the one that is waited for.
func until(t *testing.T, ask func() (reply, bool)) reply {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got, done := ask()
		if done {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("still %d %s", got.status, got.body)
		}
	}
}

// All the fields of a form together are bounded as a JSON body is.
func TestFormsAreBounded(t *testing.T) {
	options := proxy.Options{}
	options.Limits.Limits = jsonblob.Limits{Skeleton: 100 << 10}
	base := serve(t, options)
	field := strings.Repeat("b", 60<<10)
	for many, status := range map[int]int{1: 201, 2: 413} {
		form := url.Values{"name": {"n"}, "description": {"d"}}
		for i := range many {
			form.Set(fmt.Sprint("x", i), field)
		}
		form.Set("Bugzilla_api_key", "k")
		got := ask(t, "POST", base+"/rest/flag_type", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		if got.status == 413 {
			got.wantError(t, 413, "200413")
		}
		if got.status != status {
			t.Errorf("%d fields: %d %s", many, got.status, got.body)
		}
	}
}
