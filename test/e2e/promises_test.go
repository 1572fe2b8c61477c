package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portico/proxy"
)

// promise is one thing that clients can rely on, and the steps that show it with each plan: a sentence of
// docs/reference/interface.md by its section, or what other pages say, by their subject.
type promise struct {
	subject, name string
	plans         []plan
	steps         string
}

var (
	once       = []plan{{}}
	both       = []plan{{}, {cached: true}}
	inForm     = []plan{{responses: proxy.ResponsesInterface}}
	eitherForm = []plan{{}, inForm[0]}
	everyWay   = append(both, inForm[0], plan{responses: proxy.ResponsesInterface, cached: true})
)

// sending makes plans of clients, each in several ways to send headers and parameters.
func sending(plans []plan, ways ...[2]string) (all []plan) {
	for _, p := range plans {
		for _, way := range ways {
			p.header, p.query = way[0], way[1]
			all = append(all, p)
		}
	}
	return all
}

// keep runs all promises, each with an environment of its own. prefix begins every path. Steps can write $false and $true for the
// booleans of responses, and $token for a token of the administrator.
func keep(t *testing.T, prefix string, promises []promise) {
	for _, each := range promises {
		for _, p := range each.plans {
			t.Run(each.subject+"/"+each.name+"/"+p.String(), func(t *testing.T) {
				t.Parallel()
				s := steps(open(t, p))
				s.prefix, s.query, s.header = prefix, p.query, http.Header{}
				s.names["false"], s.names["true"] = "0", "1"
				if p.responses == proxy.ResponsesInterface {
					s.names["false"], s.names["true"] = "false", "true"
				}
				if strings.Contains(p.header+p.query, "$token") {
					s.names["token"] = s.login(t)
				}
				for line := range strings.Lines(p.header) {
					name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
					s.header.Set(name, value)
				}
				err := s.run(t, each.steps)
				switch known := strings.HasSuffix(each.name, "(a known failure)"); {
				case known && err == nil:
					t.Error("this holds now: it is no known failure")
				case !known && err != nil:
					t.Error(err)
				}
			})
		}
	}
}
