package tracker

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
)

// planPage answers the pages that people look at: the start page, a bug, and the download of an attachment.
func (s *Server) planPage(r *http.Request, program script) plan {
	do := map[script]func(*call) (*reply, error){
		scriptIndex: (*call).indexPage, scriptShowBug: (*call).bugPage, scriptAttachment: (*call).download,
	}[program]
	return plan{op: string(program), run: func() *reply {
		var a *reply
		op := &operation{name: string(program), do: func(c *call) (_ any, err error) {
			a, err = do(c)
			return nil, err
		}}
		params := joined(parseForm(r.URL.RawQuery))
		fixCredentials(params)
		o := s.perform(r, op, params)
		if f := asFailure(o.err); f != nil {
			a = htmlReply("Problem", "<p>"+html.EscapeString(f.message)+"</p>")
		}
		return a
	}}
}

func htmlReply(title, body string) *reply {
	a := newReply(http.StatusOK)
	a.header.Set("Content-Type", "text/html; charset=UTF-8")
	a.body = []byte(page(title, body))
	return a
}

func (c *call) indexPage() (*reply, error) {
	return htmlReply("Reference tracker", "<h1>Reference tracker</h1>\n<p>Version "+html.EscapeString(c.server.options.Version)+".</p>"), nil
}

func (c *call) bugPage() (*reply, error) {
	b, err := c.bug(c.params["id"])
	if err != nil {
		return nil, err
	}
	return htmlReply(fmt.Sprintf("%d - %s", b.id, b.summary), "<h1>Bug "+text(int64(b.id))+"</h1>\n<p>"+html.EscapeString(b.summary)+"</p>"), nil
}

// download gives the content of an attachment as it is.
func (c *call) download() (*reply, error) {
	id, _ := natural(trim(text(c.params["id"])))
	att := c.tx.attachments.get(id)
	if att == nil {
		return nil, fail(codeUser, "there is no attachment %s", text(c.params["id"]))
	}
	if _, err := c.bug(int64(att.bug)); err != nil {
		return nil, err
	}
	if att.private && !c.insider(c.user) {
		return nil, fail(codeNotAllowed, "attachment #%d is not open to you", id)
	}
	a := newReply(http.StatusOK)
	a.header.Set("Content-Type", att.contentType+"; name=\""+url.PathEscape(att.fileName)+"\"")
	a.header.Set("Content-Disposition", "inline; filename*=UTF-8''"+url.PathEscape(att.fileName))
	a.header.Set("X-Content-Type-Options", "nosniff")
	a.body, a.sized = att.data, true
	return a, nil
}
