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

// Paths of the API.
const (
	pathAPI        = "/api/"
	pathState      = pathAPI + "state"
	pathEvents     = pathAPI + "events"
	pathSearch     = pathAPI + "search"
	pathObject     = pathAPI + "object"
	pathPicture    = pathAPI + "picture"
	pathManifest   = pathAPI + "manifest"
	pathRequest    = pathAPI + "request"
	pathViolations = pathAPI + "violations"
	pathChange     = pathAPI + "change"
	pathAssets     = "/assets/"
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
	mux.HandleFunc("GET "+pathState, s.getState)
	mux.HandleFunc("GET "+pathEvents, s.getEvents)
	mux.HandleFunc("GET "+pathSearch, s.getSearch)
	mux.HandleFunc("GET "+pathObject, s.getObject)
	mux.HandleFunc("GET "+pathPicture, s.getPicture)
	mux.HandleFunc("GET "+pathManifest, s.getManifest)
	mux.HandleFunc("GET "+pathRequest, s.getRequest)
	mux.HandleFunc("GET "+pathViolations, s.getViolations)
	mux.HandleFunc("POST "+pathChange, s.postChange)
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

func objectQuery(r *http.Request) ObjectQuery {
	q := r.URL.Query()
	return ObjectQuery{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), Limit: maxPaths}
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	answer(w, r, objectQuery(r), state.Object)
}

func (s *Server) getManifest(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	answer(w, r, objectQuery(r), func(ctx context.Context, q ObjectQuery) (map[string]string, error) {
		text, err := state.Manifest(ctx, q)
		return map[string]string{"manifest": text}, err
	})
}

// getPicture answers with SVG, which the page inserts as elements. Its style is in a
// metadata element: the Content-Security-Policy refuses style elements.
func (s *Server) getPicture(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	picture, err := state.Picture(r.Context(), objectQuery(r), address)
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

func (s *Server) getRequest(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	query := RequestQuery{
		Request: q.Get("request"), Headers: q["header"], Gateway: q.Get("gateway"),
		ClientNamespace: q.Get("client-namespace"), SNI: q.Get("sni"), Limit: maxPaths,
	}
	if text := q.Get("port"); text != "" {
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil || port < 1 || port > 65535 {
			writeError(w, http.StatusBadRequest, fmt.Errorf("invalid port %q: must be in 1-65535", text))
			return
		}
		query.Port = int32(port)
	}
	state, _ := s.model.current()
	answer(w, r, query, state.Request)
}

func (s *Server) getViolations(w http.ResponseWriter, r *http.Request) {
	state, _ := s.model.current()
	answer(w, r, maxViolations, state.Violations)
}

// postChange evaluates a change, and makes none.
func (s *Server) postChange(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, fmt.Errorf("the Content-Type must be application/json"))
		return
	}
	change := Change{Limit: maxChanges}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange)).Decode(&change)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the change exceeds %d MiB: use kubectl overrule check -f", maxChange>>20))
		return
	case err != nil:
		writeError(w, http.StatusBadRequest, fmt.Errorf("read the change: %w", err))
		return
	}
	state, _ := s.model.current()
	answer(w, r, change, state.Change)
}

// answer writes the answer to a question, or its error.
func answer[Q, A any](w http.ResponseWriter, r *http.Request, question Q, ask func(context.Context, Q) (A, error)) {
	a, err := ask(r.Context(), question)
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	writeJSON(w, http.StatusOK, a)
}

func statusOf(err error) int {
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
