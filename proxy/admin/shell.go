package admin

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"net/http"
	"slices"
	"strings"

	"portico/proxy/admin/view"
)

// Sheet is one page without the common frame, which has the name, the list of pages and the stylesheet.
type Sheet struct {
	// Status is the HTTP status; 0 means 200.
	Status int
	// Title is the title of the browser's tab.
	Title string
	// Body names the template of the page's content, one of Templates, executed with Data. It begins with a heading of the first level.
	Body      string
	Templates *view.Set
	Data      any
	// Live offers to reload the page every 10 seconds with ?refresh. Pages with forms are not live.
	Live bool
}

// frame is the data of the common template.
type frame struct {
	Sheet
	// Links are the pages in the list, and Here is the path of the present one.
	Links []Page
	Here  string
	// Refresh says that the page at Path loads itself again.
	Refresh bool
	Path    string
}

//go:embed html
var pageFiles embed.FS

var templates = view.New(pageFiles, nil)

// Show responds with a page in the common frame. A page that cannot be rendered becomes a plain 500, never half a page.
func Show(w http.ResponseWriter, r *http.Request, sheet Sheet) {
	var whole bytes.Buffer
	links, _ := r.Context().Value(linksKey{}).([]Page)
	path := r.URL.Path
	page := frame{sheet, links, "/" + strings.Split(path, "/")[1], sheet.Live && r.URL.Query().Has("refresh"), path}
	if errors.Join(templates.Execute(&whole, "top", page), sheet.Templates.Execute(&whole, sheet.Body, sheet.Data), templates.Execute(&whole, "bottom", page)) != nil {
		plain(w, http.StatusInternalServerError, "the page cannot be shown")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(sheet.Status, http.StatusOK))
	_, _ = w.Write(whole.Bytes()) // a browser that has gone needs no error
}

type linksKey struct{}

// withLinks puts the list of pages into the context, for Show.
func (s *Server) withLinks(next http.Handler) http.Handler {
	links := slices.Concat([]Page{{Path: "/", Title: "Status"}}, s.options.Pages, []Page{{Path: "/metrics", Title: "Metrics"}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), linksKey{}, links)))
	})
}
