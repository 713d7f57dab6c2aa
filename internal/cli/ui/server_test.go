package ui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/process"
)

// fakeState has one route.
type fakeState struct{ objects []Object }

var toystore = api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "toystore"}

func newFakeState() fakeState {
	return fakeState{objects: []Object{
		{Ref: toystore, Hostnames: []string{"toys.example.com"}, Rules: []string{"admin"}},
		{Ref: api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "app", Name: "toystore-auth"}, Policy: true, Rules: []string{"rules.authentication.sso"}},
	}}
}

func (s fakeState) Objects() []Object  { return s.objects }
func (s fakeState) Warnings() []string { return nil }

func (s fakeState) Object(_ context.Context, q ObjectQuery) (*ObjectAnswer, error) {
	if q.Name != toystore.Name {
		return nil, ErrNotFound
	}
	return &ObjectAnswer{Object: s.objects[0]}, nil
}

func (s fakeState) Picture(_ context.Context, q ObjectQuery, link func(kind, namespace, name string) string) (string, error) {
	if q.Name != toystore.Name {
		return "", ErrNotFound
	}
	return `<svg xmlns="http://www.w3.org/2000/svg"><a href="` + link("Gateway", "a b", "edge") + `"/></svg>`, nil
}

func (s fakeState) Request(_ context.Context, q RequestQuery) (*Explanations, error) {
	if q.Request == "" {
		return nil, ErrInput
	}
	return &Explanations{}, nil
}

func (s fakeState) Violations(context.Context, int) (*Violations, error) {
	return nil, errors.New("boom")
}

func (s fakeState) Change(_ context.Context, c Change) (*ChangeAnswer, error) {
	return &ChangeAnswer{Warnings: []string{c.Manifest}}, nil
}

func (s fakeState) Manifest(context.Context, ObjectQuery) (string, error) { return "kind: X\n", nil }

// fakeSource is a source whose next state the test sets.
type fakeSource struct {
	mu    sync.Mutex
	state State
	err   error
	wake  chan struct{}
}

func newFakeSource() *fakeSource {
	return &fakeSource{state: newFakeState(), wake: make(chan struct{})}
}

func (s *fakeSource) Name() string { return "test" }

func (s *fakeSource) Load(context.Context) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.err
}

func (s *fakeSource) Close() error { return nil }

func (s *fakeSource) Wait(ctx context.Context) error {
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *fakeSource) set(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.wake <- struct{}{}
}

// lockedBuffer is what the terminal shows.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// testServer is a server with its source and its terminal.
type testServer struct {
	*Server
	source *fakeSource
	out    *lockedBuffer
}

func start(t *testing.T) *testServer {
	t.Helper()
	source, out := newFakeSource(), &lockedBuffer{}
	s, err := New(t.Context(), source, Options{Out: out})
	require.NoError(t, err)
	process.Run(t, s.Run)
	return &testServer{s, source, out}
}

func (s *testServer) address(path string) string { return "http://" + s.hosts[0] + path }

// reply is a response that was read.
type reply struct {
	StatusCode int
	Header     http.Header
	Cookies    []*http.Cookie
	Body       string
}

// do sends a request with the cookie, which edit may change.
func (s *testServer) do(t *testing.T, method, path, body string, edit func(*http.Request)) reply {
	t.Helper()
	response, err := http.DefaultTransport.RoundTrip(s.request(t, method, path, body, edit))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return reply{response.StatusCode, response.Header, response.Cookies(), string(data)}
}

func (s *testServer) request(t *testing.T, method, path, body string, edit func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.address(path), strings.NewReader(body))
	require.NoError(t, err)
	r.AddCookie(&http.Cookie{Name: s.cookieName(), Value: s.session.cookie})
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if edit != nil {
		edit(r)
	}
	return r
}

func noCookie(r *http.Request) { r.Header.Del("Cookie") }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestRequests(t *testing.T) {
	s := start(t)
	site := func(site, mode, dest string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Mode", mode)
			r.Header.Set("Sec-Fetch-Dest", dest)
		}
	}
	large := `{"manifest":"` + strings.Repeat("x", maxChange) + `"}`
	for name, test := range map[string]struct {
		method, path, body string
		edit               func(*http.Request)
		status             int
		says               string
	}{
		"the page":                          {path: "/", status: 200, says: "<!doctype html>"},
		"an object's page":                  {path: "/o/HTTPRoute/app/toystore", status: 200, says: "<!doctype html>"},
		"a page that does not exist":        {path: "/foo", status: 404, says: "<!doctype html>"},
		"a module":                          {path: "/assets/app.js", status: 200, says: "import"},
		"a file that does not exist":        {path: "/assets/none.js", status: 404, says: "not found"},
		"a directory":                       {path: "/assets/", status: 404, says: "not found"},
		"a path out of the assets":          {path: "/assets/..%2f..%2fserver.go", status: 404, says: "not found"},
		"the state":                         {path: "/api/state", status: 200, says: `"version":1`},
		"an object":                         {path: "/api/object?kind=HTTPRoute&namespace=app&name=toystore", status: 200, says: `"toystore"`},
		"an unknown object":                 {path: "/api/object?kind=HTTPRoute&namespace=app&name=none", status: 404, says: "not found"},
		"an unknown question":               {path: "/api/none", status: 404, says: "/api/none not found"},
		"a picture":                         {path: "/api/picture?kind=HTTPRoute&name=toystore", status: 200, says: `href="/o/Gateway/a%20b/edge"`},
		"a picture of an unknown object":    {path: "/api/picture?kind=HTTPRoute&name=none", status: 404, says: "not found"},
		"a manifest":                        {path: "/api/manifest?kind=HTTPRoute&name=toystore", status: 200, says: "kind: X"},
		"a request":                         {path: "/api/request?request=GET+http://x/", status: 200, says: "items"},
		"an invalid request":                {path: "/api/request", status: 422, says: "invalid input"},
		"an invalid port":                   {path: "/api/request?request=x&port=70000", status: 400, says: "1-65535"},
		"an error of the engine":            {path: "/api/violations", status: 500, says: "boom"},
		"a change":                          {method: "POST", path: "/api/change", body: `{"manifest":"a"}`, status: 200, says: `"warnings":["a"]`},
		"a change that is not JSON":         {method: "POST", path: "/api/change", body: `{`, status: 400, says: "read the change"},
		"a change as a form":                {method: "POST", path: "/api/change", body: `x`, edit: header("Content-Type", "text/plain"), status: 415, says: "application/json"},
		"a change that is too large":        {method: "POST", path: "/api/change", body: large, status: 413, says: "1 MiB"},
		"a POST elsewhere":                  {method: "POST", path: "/api/object", body: `{}`, status: 405, says: "not allowed"},
		"a PUT":                             {method: "PUT", path: "/api/change", body: `{}`, status: 405, says: "not allowed"},
		"localhost":                         {path: "/api/state", edit: func(r *http.Request) { r.Host = s.hosts[1] }, status: 200, says: "version"},
		"DNS rebinding":                     {path: "/api/state", edit: func(r *http.Request) { r.Host = "evil.example.com" }, status: 421, says: "Host header"},
		"another port in the Host":          {path: "/api/state", edit: func(r *http.Request) { r.Host = "127.0.0.1:1" }, status: 421, says: "Host header"},
		"no cookie for data":                {path: "/api/state", edit: noCookie, status: 401, says: "has not opened the link"},
		"no cookie for a module":            {path: "/assets/app.js", edit: noCookie, status: 401, says: "has not opened the link"},
		"no cookie for the page":            {path: "/violations", edit: noCookie, status: 401, says: "/violations\">continue</a>"},
		"a path of another host":            {path: "//evil.example.com/?token=x", status: 200, says: `content="0; url=http://` + s.hosts[0] + `//evil.example.com/"`},
		"no cookie for a change":            {method: "POST", path: "/api/change", body: `{"manifest":"a"}`, edit: noCookie, status: 401, says: "has not opened the link"},
		"a wrong cookie":                    {path: "/api/state", edit: header("Cookie", s.cookieName()+"=x"), status: 401, says: "has not opened the link"},
		"a wrong token":                     {path: "/?token=x", edit: noCookie, status: 401, says: "Open the new link"},
		"data for another site":             {path: "/api/state", edit: site("cross-site", "cors", "empty"), status: 403, says: "other pages"},
		"data for another port":             {path: "/api/state", edit: site("same-site", "cors", "empty"), status: 403, says: "other pages"},
		"data as a navigation from a site":  {path: "/api/state", edit: site("cross-site", "navigate", "document"), status: 403, says: "other pages"},
		"a module for another site":         {path: "/assets/app.js", edit: site("cross-site", "no-cors", "script"), status: 403, says: "other pages"},
		"a link on another site":            {path: "/violations", edit: site("cross-site", "navigate", "document"), status: 200, says: "<!doctype html>"},
		"a frame on another site":           {path: "/", edit: site("cross-site", "navigate", "iframe"), status: 403, says: "other pages"},
		"data with another origin":          {path: "/api/state", edit: header("Origin", "http://evil.example.com"), status: 403, says: "other pages"},
		"a change of another origin":        {method: "POST", path: "/api/change", body: `{}`, edit: header("Origin", "http://127.0.0.1:1"), status: 403, says: "other pages"},
		"a change of an opaque origin":      {method: "POST", path: "/api/change", body: `{}`, edit: header("Origin", "null"), status: 403, says: "other pages"},
		"a change of another site":          {method: "POST", path: "/api/change", body: `{}`, edit: site("cross-site", "navigate", "document"), status: 403, says: "other pages"},
		"a change of the page":              {method: "POST", path: "/api/change", body: `{"manifest":"a"}`, edit: header("Origin", "http://"+s.hosts[0]), status: 200, says: "warnings"},
		"the events of another site":        {path: "/api/events", edit: site("cross-site", "cors", "empty"), status: 403, says: "other pages"},
		"a search":                          {path: "/api/search?q=toys.example", status: 200, says: `"match":"toys.example.com"`},
		"a search with an invalid limit":    {path: "/api/search?q=toystore&limit=-1", status: 200, says: `"total":2`},
		"an object of a page with a token?": {path: "/api/state?token=x", edit: noCookie, status: 401, says: "has not opened the link"},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			r := s.do(t, method, test.path, test.body, test.edit)
			assert.Equal(t, test.status, r.StatusCode)
			assert.Contains(t, r.Body, test.says)
			assert.Equal(t, policy, r.Header.Get("Content-Security-Policy"))
			assert.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			assert.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
			assert.Equal(t, "no-referrer", r.Header.Get("Referrer-Policy"))
			assert.Equal(t, "same-origin", r.Header.Get("Cross-Origin-Resource-Policy"))
			assert.Empty(t, r.Header.Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestTokenIsExchangedOnce(t *testing.T) {
	s := start(t)
	link, err := url.Parse(s.URL())
	require.NoError(t, err)
	token := link.Query().Get("token")

	// A deep link works with a token, too.
	r := s.do(t, http.MethodGet, "/o/HTTPRoute/app/toystore?kind=x&token="+token, "", noCookie)
	require.Equal(t, http.StatusOK, r.StatusCode)
	assert.Contains(t, r.Body, `content="0; url=http://`+s.hosts[0]+`/o/HTTPRoute/app/toystore?kind=x"`)
	require.Len(t, r.Cookies, 1)
	cookie := r.Cookies[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	assert.Equal(t, s.cookieName(), cookie.Name)
	r = s.do(t, http.MethodGet, "/api/state", "", header("Cookie", cookie.Name+"="+cookie.Value))
	assert.Equal(t, http.StatusOK, r.StatusCode)

	// The browser that has the cookie can open the link again, another one cannot.
	assert.Equal(t, http.StatusOK, s.do(t, http.MethodGet, "/?token="+token, "", nil).StatusCode)
	r = s.do(t, http.MethodGet, "/?token="+token, "", noCookie)
	assert.Equal(t, http.StatusUnauthorized, r.StatusCode)
	assert.Empty(t, r.Cookies)

	// The terminal has a new link, and prints no further one before that was used.
	s.do(t, http.MethodGet, "/", "", noCookie)
	assert.Equal(t, 1, strings.Count(s.out.String(), "Another browser"))
	second := s.URL()
	assert.Contains(t, s.out.String(), second)
	assert.NotContains(t, second, token)
	r = s.do(t, http.MethodGet, strings.TrimPrefix(second, s.address("")), "", noCookie)
	assert.Equal(t, http.StatusOK, r.StatusCode)
	assert.Len(t, r.Cookies, 1)
}

func TestEvents(t *testing.T) {
	s := start(t)
	r, err := http.DefaultTransport.RoundTrip(s.request(t, http.MethodGet, "/api/events", "", nil))
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	lines := bufio.NewScanner(r.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	assert.JSONEq(t, `{"version":1,"source":"test"}`, next())

	s.source.set(nil)
	assert.JSONEq(t, `{"version":2,"source":"test"}`, next())

	s.source.set(errors.New("a.yaml:3: invalid manifest"))
	failed := next()
	assert.Contains(t, failed, `"version":2`)
	assert.Contains(t, failed, `"error":"a.yaml:3: invalid manifest"`)
	assert.Contains(t, failed, `"since"`)
	state := s.do(t, http.MethodGet, "/api/object?kind=HTTPRoute&name=toystore", "", nil).Body
	assert.Contains(t, state, "toystore", "the last state is kept")

	s.source.set(ErrUnchanged)
	assert.JSONEq(t, `{"version":2,"source":"test"}`, next())
}

func TestListensOnLoopbackOnly(t *testing.T) {
	s := start(t)
	assert.True(t, strings.HasPrefix(s.listener.Addr().String(), "127.0.0.1:"))
	_, err := New(t.Context(), newFakeSource(), Options{Port: s.port, Out: io.Discard})
	assert.ErrorContains(t, err, "choose another one with --port")
}

func TestNewReportsTheFirstError(t *testing.T) {
	source := newFakeSource()
	source.err = errors.New("a.yaml:3: invalid manifest")
	_, err := New(t.Context(), source, Options{Out: io.Discard})
	assert.Equal(t, source.err, err)
}

func TestRunOpensTheBrowser(t *testing.T) {
	opened, out := make(chan string, 1), &lockedBuffer{}
	s, err := New(t.Context(), newFakeSource(), Options{Out: out, Open: func(link string) error {
		opened <- link
		return errors.New("no browser")
	}})
	require.NoError(t, err)
	stop := process.Run(t, s.Run)
	assert.Equal(t, s.URL(), <-opened)
	stop()
	assert.Contains(t, out.String(), "cannot open a browser: no browser")
}
