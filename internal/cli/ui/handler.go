package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// The page: an HTML file, and ES modules and styles that are used as they are.
//
//go:embed page
var files embed.FS

// Paths of the page's data and files.
const (
	pathAPI    = "/api/"
	pathChange = pathAPI + "change"
	pathAssets = "/assets/"
)

// Bounds of the answers.
const (
	maxResults    = 200
	maxPaths      = 200
	maxViolations = 500
	maxChanges    = 200
	// maxChange is the size of a change in bytes.
	maxChange = 1 << 20
)

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/state", s.getState)
	mux.HandleFunc("GET /api/events", s.getEvents)
	mux.HandleFunc("GET /api/search", s.getSearch)
	mux.HandleFunc("GET /api/picture", s.getPicture)
	mux.HandleFunc("GET /api/object", answer(s, objectQuery, State.Object))
	mux.HandleFunc("GET /api/manifest", answer(s, objectQuery, manifestOf))
	mux.HandleFunc("GET /api/request", answer(s, requestQuery, State.Request))
	mux.HandleFunc("GET /api/violations", answer(s, violationLimit, State.Violations))
	mux.HandleFunc("POST "+pathChange, answer(s, changeOf, State.Change))
	mux.HandleFunc("GET "+pathAPI, func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fmt.Errorf("%s %w", r.URL.Path, ErrNotFound))
	})
	mux.HandleFunc("GET "+pathAssets, getAsset)
	mux.HandleFunc("GET /", getPage)
	return s.secure(http.NewCrossOriginProtection().Handler(mux))
}

// isPagePath reports whether a path is one of the page, not of its data and files.
func isPagePath(p string) bool {
	return !strings.HasPrefix(p, pathAPI) && !strings.HasPrefix(p, pathAssets)
}

// getPage answers every path with the same file: its script shows what the path names.
func getPage(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	if !isView(r.URL.Path) {
		status = http.StatusNotFound
	}
	writeFile(w, status, "page/index.html")
}

// isView reports whether a path names a view of the page: "/", "/o/KIND/NAME",
// "/o/KIND/NAMESPACE/NAME" and the views without an object.
func isView(p string) bool {
	if rest, ok := strings.CutPrefix(p, "/o/"); ok {
		parts := strings.Split(rest, "/")
		return len(parts) == 2 || len(parts) == 3
	}
	switch p {
	case "/", "/search", "/violations", "/request", "/change":
		return true
	}
	return false
}

func getAsset(w http.ResponseWriter, r *http.Request) {
	name := "page" + path.Clean(r.URL.Path)
	if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
		writeError(w, http.StatusNotFound, fmt.Errorf("%s %w", r.URL.Path, ErrNotFound))
		return
	}
	writeFile(w, http.StatusOK, name)
}

func writeFile(w http.ResponseWriter, status int, name string) {
	data, err := files.ReadFile(name)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	w.WriteHeader(status)
	_, _ = w.Write(data) //nolint:gosec // an embedded file; the browser may have gone away
}

// contentType does not depend on the MIME types of the machine, which may lack .js.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}

// StateAnswer is the status, with a summary of the objects.
type StateAnswer struct {
	Status
	Kinds    []KindCount `json:"kinds"`
	Warnings []string    `json:"warnings,omitempty"`
}

func (s *Server) getState(w http.ResponseWriter, _ *http.Request) {
	state, status := s.model.current()
	writeJSON(w, http.StatusOK, StateAnswer{Status: status, Kinds: state.counts(), Warnings: state.Warnings()})
}

func (s *Server) getSearch(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > maxResults {
		limit = maxResults
	}
	writeJSON(w, http.StatusOK, state.search(q.Get("q"), q.Get("kind"), limit))
}

func objectQuery(_ http.ResponseWriter, r *http.Request) (ObjectQuery, error) {
	q := r.URL.Query()
	return ObjectQuery{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), Limit: maxPaths}, nil
}

func manifestOf(s State, ctx context.Context, q ObjectQuery) (map[string]string, error) { //nolint:revive // as the methods of State
	text, err := s.Manifest(ctx, q)
	return map[string]string{"manifest": text}, err
}

// getPicture answers with SVG, which the page inserts as elements. Its style is in a
// metadata element: the Content-Security-Policy refuses style elements.
func (s *Server) getPicture(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	q, _ := objectQuery(w, r) // it returns no error
	picture, err := state.Picture(r.Context(), q, address)
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	picture = strings.NewReplacer("<style>", "<metadata>", "</style>", "</metadata>").Replace(picture)
	_, _ = io.WriteString(w, picture) //nolint:gosec // package graph escapes names; the browser may have gone away
}

// address returns the address of the view of an object.
func address(kind, namespace, name string) string {
	parts := []string{"", "o", url.PathEscape(kind)}
	if namespace != "" {
		parts = append(parts, url.PathEscape(namespace))
	}
	return strings.Join(append(parts, url.PathEscape(name)), "/")
}

func requestQuery(_ http.ResponseWriter, r *http.Request) (RequestQuery, error) {
	q := r.URL.Query()
	query := RequestQuery{
		Request: q.Get("request"), Headers: q["header"], Gateway: q.Get("gateway"),
		ClientNamespace: q.Get("client-namespace"), SNI: q.Get("sni"), Limit: maxPaths,
	}
	if text := q.Get("port"); text != "" {
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil || port < 1 || port > 65535 {
			return query, statusError{fmt.Errorf("invalid port %q: must be in 1-65535", text), http.StatusBadRequest}
		}
		query.Port = int32(port)
	}
	return query, nil
}

func violationLimit(http.ResponseWriter, *http.Request) (int, error) { return maxViolations, nil }

// changeOf returns the change of a request, which is evaluated, and not made.
func changeOf(w http.ResponseWriter, r *http.Request) (Change, error) {
	change := Change{Limit: maxChanges}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return change, statusError{errors.New("the Content-Type must be application/json"), http.StatusUnsupportedMediaType}
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange)).Decode(&change)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return change, statusError{fmt.Errorf("the change exceeds %d MiB: use kubectl overrule check -f", maxChange>>20), http.StatusRequestEntityTooLarge}
	}
	if err != nil {
		return change, statusError{fmt.Errorf("read the change: %w", err), http.StatusBadRequest}
	}
	return change, nil
}

// answer returns the handler of a question, which read reads from a request.
func answer[Q, A any](s *Server, read func(http.ResponseWriter, *http.Request) (Q, error), ask func(State, context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		state, _ := s.model.current()
		question, err := read(w, r)
		var a A
		if err == nil {
			a, err = ask(state, r.Context(), question)
		}
		if err != nil {
			writeError(w, statusOf(err), err)
			return
		}
		writeJSON(w, http.StatusOK, a)
	}
}

// statusError is an error with its HTTP status.
type statusError struct {
	error
	status int
}

func statusOf(err error) int {
	if with, ok := errors.AsType[statusError](err); ok {
		return with.status
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrInput):
		return http.StatusUnprocessableEntity
	default:
		return http.StatusInternalServerError
	}
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the browser may have gone away
}
