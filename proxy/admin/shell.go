package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the stylesheet, the script and the frame of the pages
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Sheet is what one page shows within the common frame: the name, the list of pages, the stylesheet.
type Sheet struct {
	// Status is the HTTP status, 200 when it is 0.
	Status int
	// Title is the heading of the browser's tab.
	Title string
	// Body is the template of the page's middle, and Data what it is given. It begins with a heading of the first level.
	Body *template.Template
	Data any
	// Live says that the page is one to leave open: a reader may ask for it to be loaded again every so many seconds
	// with ?refresh=N. Pages with forms are not.
	Live bool
}

// link is one entry of the list of pages.
type link struct {
	Path, Title string
	Current     bool
}

// frame is what the common template is given.
type frame struct {
	Title             string
	Body              template.HTML
	Links             []link
	Style, Script     string
	Refresh           int
	Live              bool
	RefreshAt, StopAt string
}

//go:embed look/style.css
var styleSheet []byte

//go:embed look/copy.js
var script []byte

//go:embed look/frame.html
var frameText string

var frameTemplate = template.Must(template.New("frame").Parse(frameText))

type linksKey struct{}

// Show answers with a page in the common frame. What cannot be rendered is answered with a plain 500, never in half.
func Show(w http.ResponseWriter, r *http.Request, sheet Sheet) {
	var body, whole bytes.Buffer
	if err := sheet.Body.Execute(&body, sheet.Data); err != nil {
		plain(w, http.StatusInternalServerError, "the page cannot be shown")
		return
	}
	around := frame{
		Title: sheet.Title, Links: linksOf(r), Style: assetPath("style", styleSheet, "css"), Script: assetPath("copy", script, "js"),
		Body: template.HTML(body.String()), // what html/template has escaped
		Live: sheet.Live,
	}
	if sheet.Live {
		around.Refresh, around.RefreshAt, around.StopAt = refreshing(r)
	}
	if err := frameTemplate.Execute(&whole, around); err != nil {
		plain(w, http.StatusInternalServerError, "the page cannot be shown")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(sheet.Status, http.StatusOK))
	_, _ = w.Write(whole.Bytes()) // a browser that went away needs no error
}

// The bounds of what may be asked for with ?refresh=N, in seconds, and what the pages offer.
const (
	leastRefresh   = 5
	mostRefresh    = 3600
	offeredRefresh = 10
)

// refreshing gives the seconds that were asked for, 0 for none, and the addresses of the page with and without.
func refreshing(r *http.Request) (seconds int, with, without string) {
	query := r.URL.Query()
	seconds, err := strconv.Atoi(query.Get("refresh"))
	if err != nil || seconds < leastRefresh || seconds > mostRefresh {
		seconds = 0
	}
	at := func() string {
		return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	}
	query.Set("refresh", strconv.Itoa(offeredRefresh))
	with = at()
	query.Del("refresh")
	return seconds, with, at()
}

// withLinks lets the pages know of each other.
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

// linksOf gives the list of pages with the one marked that a request is for.
func linksOf(r *http.Request) []link {
	known, _ := r.Context().Value(linksKey{}).([]link)
	links := make([]link, len(known))
	for i, one := range known {
		one.Current = r.URL.Path == one.Path || one.Path != "/" && strings.HasPrefix(r.URL.Path, one.Path+"/")
		links[i] = one
	}
	return links
}

// assetPath is where a file of the look is: its content is part of the name, so that browsers may keep it.
func assetPath(name string, content []byte, ending string) string {
	digest := sha256.Sum256(content)
	return "/look/" + name + "-" + hex.EncodeToString(digest[:6]) + "." + ending
}

// addLook serves the stylesheet and the script.
func addLook(mux *http.ServeMux) {
	serve := func(path, kind string, content []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			_, _ = w.Write(content)
		})
	}
	serve(assetPath("style", styleSheet, "css"), "text/css; charset=utf-8", styleSheet)
	serve(assetPath("copy", script, "js"), "text/javascript; charset=utf-8", script)
}
