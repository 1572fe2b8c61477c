package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
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
	// Live offers to reload the page every N seconds with ?refresh=N. Pages with forms are not live.
	Live bool
}

// link is one entry of the list of pages.
type link struct {
	Path, Title string
	Current     bool
}

// frame is the data of the common template.
type frame struct {
	Sheet
	Links             []link
	Style, Script     string
	Refresh           int
	RefreshAt, StopAt string
}

//go:embed assets/style.css
var styleText []byte

//go:embed assets/page.js
var scriptText []byte

//go:embed html
var pageFiles embed.FS

var templates = view.MustParse(pageFiles, view.Words{
	"objects": isObjects, "columns": columnsOf, "words": inWords, "shown": shown, "moment": moment,
})

// assets returns the stylesheet and the script.
func assets() (style, script asset) {
	return newAsset("style-*.css", "text/css; charset=utf-8", styleText), newAsset("page-*.js", "text/javascript; charset=utf-8", scriptText)
}

// asset is a file that browsers may keep, because its path contains its digest.
type asset struct {
	path, contentType string
	content           []byte
}

func newAsset(name, contentType string, content []byte) asset {
	digest := sha256.Sum256(content)
	return asset{"/assets/" + strings.Replace(name, "*", hex.EncodeToString(digest[:6]), 1), contentType, content}
}

// ServeHTTP implements http.Handler.
func (a asset) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(a.content)
}

// Show responds with a page in the common frame. A page that cannot be rendered becomes a plain 500, never half a page.
func Show(w http.ResponseWriter, r *http.Request, sheet Sheet) {
	var whole bytes.Buffer
	style, script := assets()
	page := frame{Sheet: sheet, Links: linksFor(r), Style: style.path, Script: script.path}
	if sheet.Live {
		page.Refresh, page.RefreshAt, page.StopAt = refreshOf(r)
	}
	if errors.Join(templates.Execute(&whole, "top", page), sheet.Templates.Execute(&whole, sheet.Body, sheet.Data), templates.Execute(&whole, "bottom", page)) != nil {
		plain(w, http.StatusInternalServerError, "the page cannot be shown")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(sheet.Status, http.StatusOK))
	_, _ = w.Write(whole.Bytes()) // a browser that has gone needs no error
}

// The bounds of ?refresh=N and the value that pages offer, in seconds.
const (
	minRefresh     = 5
	maxRefresh     = 3600
	offeredRefresh = "10"
)

// refreshOf returns the seconds that a request asks for, 0 for none, and the URLs of the page with and without reloading.
func refreshOf(r *http.Request) (seconds int, with, without string) {
	query := r.URL.Query()
	seconds, err := strconv.Atoi(query.Get("refresh"))
	if err != nil || seconds < minRefresh || seconds > maxRefresh {
		seconds = 0
	}
	target := url.URL{Path: r.URL.Path}
	query.Set("refresh", offeredRefresh)
	target.RawQuery = query.Encode()
	with = target.String()
	query.Del("refresh")
	target.RawQuery = query.Encode()
	return seconds, with, target.String()
}

type linksKey struct{}

// withLinks puts the list of pages into the context, for Show.
func (s *Server) withLinks(next http.Handler) http.Handler {
	links := []link{{Path: "/", Title: "Status"}}
	for _, page := range s.options.Pages {
		if page.Title != "" {
			links = append(links, link{Path: page.Path, Title: page.Title})
		}
	}
	if s.options.Metrics != nil {
		links = append(links, link{Path: "/metrics", Title: "Metrics"})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), linksKey{}, links)))
	})
}

// linksFor returns the list of pages and marks the one that a request is for.
func linksFor(r *http.Request) []link {
	known, _ := r.Context().Value(linksKey{}).([]link)
	links := make([]link, len(known))
	for i, one := range known {
		one.Current = r.URL.Path == one.Path || one.Path != "/" && strings.HasPrefix(r.URL.Path, one.Path+"/")
		links[i] = one
	}
	return links
}
