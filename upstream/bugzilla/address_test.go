package bugzilla

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream"
)

// long repeats a text n times.
func long(text string, n int) string { return strings.Repeat(text, n) }

// TestLongQuestionsGetTheTrackersAnswer: no question is too long for a tracker only because of how Portico writes it.
func TestLongQuestionsGetTheTrackersAnswer(t *testing.T) {
	key := upstream.Caller{Credentials: upstream.Credentials{APIKey: long("k", 8150)}}
	flagTypes := func(product, component string) func(context.Context, *Client, upstream.Caller) error {
		return func(ctx context.Context, c *Client, who upstream.Caller) error {
			_, err := c.Do(ctx, who, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product, Component: component}})
			return err
		}
	}
	fields := func(name string, n int) func(context.Context, *Client, upstream.Caller) error {
		return func(ctx context.Context, c *Client, who upstream.Caller) error {
			include := strings.Fields(long(name+" ", n))
			_, err := c.Do(ctx, who, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"5"}, Include: include}})
			return err
		}
	}
	for _, c := range []struct {
		name       string
		ask        func(context.Context, *Client, upstream.Caller) error
		as         upstream.Caller
		stock, bmo int // the code that a tracker of the dialect gives; 0 is an answer
	}{
		{name: "the same field often", ask: fields("id", 2700)},
		{name: "a long key", ask: fields("id", 1), as: key, stock: 306, bmo: 306},
		{name: "a longer key", ask: fields("id", 1), as: upstream.Caller{Credentials: upstream.Credentials{APIKey: long("k", 8190)}},
			stock: 306, bmo: 306},
		{name: "a long key for flag types", ask: flagTypes("TestProduct", ""), as: key, stock: 306, bmo: 306},
		{name: "a long component", ask: flagTypes("TestProduct", long(",", 3000)), stock: 51, bmo: 51},
		{name: "a long product", ask: flagTypes(long(",", 3000), ""), stock: 106, bmo: 106},
		{name: "where a bug with a long alias belongs", ask: func(ctx context.Context, c *Client, who upstream.Caller) error {
			_, err := c.Bug(ctx, who, long("a", 9000))
			return err
		}, stock: 100, bmo: 100},
	} {
		for dialect, want := range map[string]int{tracker.DialectBugzilla5: c.stock, tracker.DialectBMO: c.bmo} {
			client, _ := fixture(t, tracker.Options{Dialect: dialect})
			err := c.ask(t.Context(), client, c.as)
			if codeOf(err) != want {
				t.Errorf("%s, %s: %v, want code %d", c.name, dialect, err, want)
			}
		}
	}
}

// TestNoRequestLineIsTooLong: a read goes by REST as long as it fits, and by JSON-RPC from there on.
func TestNoRequestLineIsTooLong(t *testing.T) {
	var line string
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, r *http.Request) {
		line = r.Method + " " + r.RequestURI + " " + r.Proto
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, `{"error":null,"id":1,"result":{"bugs":{},"attachments":{}}}`)
			return
		}
		_, _ = io.WriteString(w, `{"bugs":{},"attachments":{}}`)
	})
	rest := len("GET /rest/bug/5/attachment?Bugzilla_api_key=" + " HTTP/1.1")
	for size, method := range map[int]string{1: "GET", maxLine - rest: "GET", maxLine - rest + 1: "POST", 2 * maxLine: "POST"} {
		who := upstream.Caller{Credentials: upstream.Credentials{APIKey: long("k", size)}}
		_, err := client.Do(t.Context(), who, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"5"}}})
		if err != nil || len(line) > maxLine || !strings.HasPrefix(line, method+" ") {
			t.Errorf("a key of %d characters makes a request line of %d, %.20s (%v)", size, len(line), line, err)
		}
	}
}
