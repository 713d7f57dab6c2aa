package ui

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
)

// policy is the Content-Security-Policy of all responses.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types overrule"

var (
	errHost        = errors.New("the Host header is not the address of this server: open the page by the address that the terminal printed")
	errOtherOrigin = errors.New("requests of other pages are refused")
	errNoSession   = errors.New("this browser has not opened the link of the terminal: open the page by the link that the terminal printed last")
	errMethod      = errors.New("the method is not allowed: nothing can be written")
)

// secure sets the headers of all responses, and passes on requests of this server's own
// page in a browser that has the cookie.
func (s *Server) secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch {
		case !slices.Contains(s.hosts, r.Host):
			writeError(w, http.StatusMisdirectedRequest, errHost)
		case !s.sameOrigin(r):
			writeError(w, http.StatusForbidden, errOtherOrigin)
		case r.Method != http.MethodGet && (r.Method != http.MethodPost || r.URL.Path != pathChange):
			w.Header().Set("Allow", http.MethodGet)
			writeError(w, http.StatusMethodNotAllowed, errMethod)
		case r.URL.Query().Has(tokenParameter):
			s.exchange(w, r)
		case !s.hasCookie(r):
			s.refuse(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// sameOrigin reports whether a request is one of this server's own page, or a
// navigation of a tab. Another page may lead to this one by a link, but not read or
// embed it.
func (s *Server) sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	default:
		return r.Method == http.MethodGet && isPagePath(r.URL.Path) &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
}

const tokenParameter = "token"

// cookieName has the port: browsers send cookies to all ports of a host.
func (s *Server) cookieName() string { return fmt.Sprintf("overrule-%d", s.port) }

func (s *Server) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(s.cookieName())
	return err == nil && s.session.valid(c.Value)
}

// exchange exchanges the token for the cookie, once. The response is a page that goes
// on to the address without the token, with the host, since a path may begin with two
// slashes: a redirect would not send the cookie if another
// page or a mail led here.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	target := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}
	query := r.URL.Query()
	token := query.Get(tokenParameter)
	query.Del(tokenParameter)
	target.RawQuery = query.Encode()
	switch {
	case s.session.use(token):
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure needs HTTPS, which a loopback address does not have
			Name: s.cookieName(), Value: s.session.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		writePage(w, http.StatusOK, continuePage, target.String())
	case s.hasCookie(r):
		writePage(w, http.StatusOK, continuePage, target.String())
	default:
		s.refuse(w, r)
	}
}

// refuse answers a browser without the cookie. If the last link was used, the terminal
// prints a new one.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	if token := s.session.renew(); token != "" {
		s.printURL(token)
	}
	if !isPagePath(r.URL.Path) {
		writeError(w, http.StatusUnauthorized, errNoSession)
		return
	}
	target := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}
	writePage(w, http.StatusUnauthorized, refusedPage, target.String())
}

// The pages without the cookie have no style and no script.
var (
	continuePage = template.Must(template.New("continue").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={{.}}"><title>Overrule</title></head>
<body><p><a href="{{.}}">Continue to Overrule</a></p></body></html>
`))
	refusedPage = template.Must(template.New("refused").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Link needed · Overrule</title></head>
<body><h1>Open the new link in your terminal</h1>
<p>The page shows objects of your cluster, so only the browser that opened the link of the terminal may read it. Each link works once.</p>
<p>The terminal in which <code>kubectl overrule ui</code> runs has printed a new link: open that one in this browser.</p>
<p>Is the page already open in this browser? Then <a href="{{.}}">continue</a>.</p>
</body></html>
`))
)

func writePage(w http.ResponseWriter, status int, page *template.Template, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, data) // the browser may have gone away
}
