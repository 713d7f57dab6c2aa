package webhook

import (
	"net/http"
	"strings"
	"time"
)

// Tokens know what a path has to end with: PathValidate + "/" + token. Only who
// can read the webhook configurations knows it.
type Tokens interface {
	// Accepts reports whether a token is good, in a time that does not depend on
	// it. known is false as long as no token is.
	Accepts(token string) (ok, known bool)
}

// Handler returns the handler of PathValidate and PathMutate. What comes by any
// other path gets one and the same answer, and its body is not read.
func (s *Server) Handler() http.Handler {
	doors := map[string]http.Handler{
		PathValidate: s.handler(webhookValidate, evaluator{spanEvaluate, s.validate, s.denyFailed, s.denyOverloaded}),
		PathMutate:   s.handler(webhookMutate, evaluator{spanAnnotate, s.mutate, allowOnFailure, allowOnOverload}),
	}
	// No ServeMux: it answers an unclean path with a redirection.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, known := s.trimToken(r.URL.EscapedPath())
		door, ok := doors[path]
		switch {
		case !known:
			s.rejectNotReady(w)
		case !ok:
			s.rejectUnknownPath(w, r)
		default:
			door.ServeHTTP(w, r)
		}
	})
}

// known returns a path without its token; "" if that is not good. ok is false as
// long as no token is known.
func (s *Server) trimToken(path string) (door string, ok bool) {
	if s.Tokens == nil {
		return path, true
	}
	last := strings.LastIndexByte(path, '/')
	accepted, known := s.Tokens.Accepts(path[last+1:])
	if !accepted || last < 0 {
		return "", known
	}
	return path[:last], known
}

// unknownPath is the answer to whoever does not know the path. The connection
// ends with it, and with that whatever else was to be sent.
func (s *Server) rejectUnknownPath(w http.ResponseWriter, r *http.Request) {
	s.Metrics.unknownPath()
	s.Log.V(1).Info("unknown path", "from", r.RemoteAddr) // never the path: it may be nearly right
	closeConnection(w)
	http.Error(w, "not found", http.StatusNotFound)
}

// notYet is the answer to all before it is known who may call.
func (s *Server) rejectNotReady(w http.ResponseWriter) {
	s.Metrics.unavailable(webhookNone)
	retryElsewhere(w)
}

// closeSoon has the connection closed after the response, whatever of the body is
// missing: net/http waits for the rest of a short one.
func closeConnection(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	setReadDeadline(w, time.Now().Add(grace))
}

func retryElsewhere(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	closeConnection(w)
	http.Error(w, "not ready", http.StatusServiceUnavailable)
}

// RejectConnection answers a request whose connection is not good any more. Whoever may
// call comes again with another one: the API server does so by itself.
func (s *Server) RejectConnection(w http.ResponseWriter) {
	s.Metrics.callerRejected()
	retryElsewhere(w)
}
