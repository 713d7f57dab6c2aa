package certs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrNoToken is in a SecretError or FileError for an invalid token.
var ErrNoToken = errors.New("invalid token: must be 32 to 128 lower-case letters and digits")

// tokenPattern matches tokens: the API server accepts only such segments in the path of
// a webhook. The minimum length makes them hard to guess.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{32,128}$`)

// newToken returns a token of 32 random bytes.
func newToken() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(random)
}

// Keys of the Secret of PathTokens.
const (
	keyToken         = "token"
	keyNextToken     = "next"
	keyPreviousToken = "previous"
)

// tokenState is what the Secret of PathTokens records. All its tokens are accepted; the
// current one is, or will soon be, in the webhook configurations.
type tokenState struct {
	current  string
	next     string // staged: all replicas accept it before it is published
	previous string // accepted until some time after the configurations have current
}

// localTokenState is what one replica knows in addition to the Secret: durations. The
// Secret has no times, so clocks need not agree.
type localTokenState struct {
	lastState    tokenState
	lastAge      time.Duration // since lastState was read
	stagedFor    time.Duration // how long next has been known
	publishedFor time.Duration // how long current has been in the configurations; 0: it is not
}

const (
	stepTokenCreated  step = "created the token of the webhook path"
	stepTokenRestored step = "restored the token of the webhook path from memory"
	stepTokenStaged   step = "staged the next token of the webhook path"
	stepTokenPromoted step = "promoted the staged token of the webhook path"
	stepTokenRetired  step = "retired the previous token of the webhook path"
)

// tokenRules decide when a token is replaced.
type tokenRules struct {
	propagation time.Duration // until every replica has read what is staged
	retention   time.Duration // for which an old token is accepted once it is unused
}

// plan returns the state that the Secret should record, given the one that it records.
func (r tokenRules) plan(stored tokenState, k localTokenState) (p tokenState, steps []step) {
	p = stored
	record := func(s step) { steps = append(steps, s) }
	switch {
	case p.current == "" && k.lastState.current == "":
		p.current = newToken()
		record(stepTokenCreated)
	case p.current == "":
		// It may have been deleted because it was disclosed, so it is rotated.
		p.current = k.lastState.current
		record(stepTokenRestored)
		if p.next == "" {
			p.next = newToken()
			record(stepTokenStaged)
		}
	case k.lastAge < r.propagation && p.editedSince(k.lastState): // else this replica may have missed a whole rotation
		p.current, p.next = k.lastState.current, p.current
		record(stepTokenStaged)
	}
	p = p.withoutDuplicates()
	// One rotation at a time: while previous is set, clients may still use it.
	if p.next != "" && p.previous == "" && k.stagedFor >= r.propagation {
		p = tokenState{current: p.next, previous: p.current}
		record(stepTokenPromoted)
	} else if p.previous != "" && k.publishedFor >= r.retention {
		p.previous = ""
		record(stepTokenRetired)
	}
	return p, steps
}

// editedSince reports whether another client replaced the current token: that it is
// not the result of a promotion.
func (t tokenState) editedSince(last tokenState) bool {
	return last.current != "" && t.current != last.current && t.current != last.next && t.previous != last.current
}

// withoutDuplicates removes tokens that are present twice.
func (t tokenState) withoutDuplicates() tokenState {
	if t.next == t.current {
		t.next = ""
	}
	if t.previous == t.current || t.previous == t.next {
		t.previous = ""
	}
	return t
}

func (t tokenState) all() []string {
	var out []string
	for _, token := range []string{t.current, t.next, t.previous} {
		if token != "" {
			out = append(out, token)
		}
	}
	return out
}

// decodeTokens returns the state that a Secret records; nil records nothing. The error
// joins those of invalid tokens, which the state lacks.
func decodeTokens(secret *corev1.Secret) (p tokenState, err error) {
	if secret == nil {
		return tokenState{}, nil
	}
	r := secretDecoder{secret: secret}
	for key, into := range p.fields() {
		switch data := secret.Data[key]; {
		case len(data) == 0:
		case !tokenPattern.Match(data):
			r.addError(key, ErrNoToken)
		default:
			*into = string(data)
		}
	}
	return p, errors.Join(r.errs...)
}

func (t *tokenState) fields() map[string]*string {
	return map[string]*string{keyToken: &t.current, keyNextToken: &t.next, keyPreviousToken: &t.previous}
}

// encodeTokens writes p into a Secret and keeps all other keys.
func encodeTokens(p tokenState, secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, from := range p.fields() {
		if *from == "" {
			delete(secret.Data, key)
			continue
		}
		secret.Data[key] = []byte(*from)
	}
}
