package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
)

// session keeps the secrets of one run: a token that is used once to open the page, and
// the value of the cookie that it is exchanged for.
type session struct {
	cookie string

	mu    sync.Mutex
	token string // empty once it was used
}

func newSession() *session { return &session{cookie: rand.Text(), token: rand.Text()} }

// use reports whether the token is valid, which ends its validity.
func (s *session) use(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || !equal(token, s.token) {
		return false
	}
	s.token = ""
	return true
}

// renew returns a new token if the last one was used, else the empty string.
func (s *session) renew() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" {
		return ""
	}
	s.token = rand.Text()
	return s.token
}

// current returns the token that was not used yet.
func (s *session) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

func (s *session) valid(cookie string) bool { return equal(cookie, s.cookie) }

// equal compares secrets in a time that does not depend on where they differ.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
