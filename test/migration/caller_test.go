package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// caller is a client that writes, and looks at once for what it has written.
type caller struct {
	name   string
	base   string
	key    string
	http   *http.Client
	random *rand.Rand

	writes []string
	// elsewhere are those of them that are about bugs of other products.
	elsewhere []string
	count     int
	faults    []string
	own       []own
}

// otherBug is in a product of its own, Product/With/Slash.
const otherBug = 6

// own is an attachment that the caller has made.
type own struct {
	bug, id int
	summary string
}

// wrong takes down what should not have been.
func (c *caller) wrong(format string, args ...any) {
	c.faults = append(c.faults, c.name+": "+fmt.Sprintf(format, args...))
}

// do makes one request and gives its answer.
func (c *caller) do(method, path string, body any) (status int, answer map[string]any) {
	c.count++
	id := fmt.Sprintf("%s-%d", c.name, c.count)
	got, err := request(context.Background(), c.http, method, c.base+path, body, keyHeader, c.key, "X-Request-Id", id)
	if err == nil {
		err = json.Unmarshal(got.text, &answer)
	}
	if err != nil || got.status >= 300 {
		c.wrong("%s %s: %d %.300s (%v)", method, path, got.status, got.text, err)
		return got.status, nil
	}
	if method != http.MethodGet {
		c.writes = append(c.writes, id)
	}
	return got.status, answer
}

// round writes something and looks for it.
func (c *caller) round(bugs []int) {
	switch n := c.random.IntN(10); {
	case n < 4 || len(c.own) == 0:
		c.attach(bugs[c.random.IntN(len(bugs))])
	case n < 8:
		c.rename(&c.own[c.random.IntN(len(c.own))])
	default:
		c.see(c.own[c.random.IntN(len(c.own))])
	}
}

func (c *caller) attach(bug int) {
	made := own{bug: bug, summary: fmt.Sprintf("%s %d", c.name, c.count)}
	_, answer := c.do(http.MethodPost, fmt.Sprintf("/rest/bug/%d/attachment", bug), map[string]any{
		"data": "aGVsbG8K", "file_name": "hello.txt", "summary": made.summary, "content_type": "text/plain",
	})
	ids, _ := answer["ids"].([]any)
	if len(ids) != 1 {
		return
	}
	c.noteElsewhere(bug)
	made.id = int(ids[0].(float64))
	c.own = append(c.own, made)
	c.see(made)
	c.listed(made)
}

func (c *caller) rename(o *own) {
	o.summary = fmt.Sprintf("%s %d", c.name, c.count)
	if status, _ := c.do(http.MethodPut, fmt.Sprintf("/rest/bug/attachment/%d", o.id), map[string]any{"summary": o.summary}); status == http.StatusOK {
		c.noteElsewhere(o.bug)
		c.see(*o)
	}
}

// noteElsewhere remembers the last write if it was about a bug of another product.
func (c *caller) noteElsewhere(bug int) {
	if bug == otherBug {
		c.elsewhere = append(c.elsewhere, c.writes[len(c.writes)-1])
	}
}

// see reads an attachment by its id.
func (c *caller) see(o own) {
	_, answer := c.do(http.MethodGet, fmt.Sprintf("/rest/bug/attachment/%d?exclude_fields=data", o.id), nil)
	if answer == nil {
		return
	}
	attachments, _ := answer["attachments"].(map[string]any)
	found, _ := attachments[fmt.Sprint(o.id)].(map[string]any)
	if found["summary"] != o.summary {
		c.wrong("attachment %d reads %v after it was written as %q", o.id, found["summary"], o.summary)
	}
}

// listed looks for an attachment among those of its bug.
func (c *caller) listed(o own) {
	_, answer := c.do(http.MethodGet, fmt.Sprintf("/rest/bug/%d/attachment?include_fields=id,summary", o.bug), nil)
	if answer == nil {
		return
	}
	bugs, _ := answer["bugs"].(map[string]any)
	list, _ := bugs[fmt.Sprint(o.bug)].([]any)
	for _, each := range list {
		if entry, _ := each.(map[string]any); entry["summary"] == o.summary {
			return
		}
	}
	c.wrong("attachment %d is not among those of bug %d", o.id, o.bug)
}

// flagType makes a flag type and looks for it among those of its product.
func (c *caller) flagType(product string) {
	name := strings.ReplaceAll(fmt.Sprintf("%s-%d", c.name, c.count), " ", "-")
	_, answer := c.do(http.MethodPost, "/rest/flag_type", map[string]any{
		"name": name, "description": "made by a test", "inclusions": []string{product},
	})
	if answer == nil {
		return
	}
	_, answer = c.do(http.MethodGet, "/rest/flag_type/"+product, nil)
	list, _ := answer["bug"].([]any)
	for _, each := range list {
		if entry, _ := each.(map[string]any); entry["name"] == name {
			return
		}
	}
	c.wrong("flag type %s is not among those of %s", name, product)
}
