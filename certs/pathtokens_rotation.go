package certs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrNoToken is in a SecretError or FileError for what is no token of a path.
var ErrNoToken = errors.New("invalid token: must be 32 to 128 lower-case letters and digits")

// tokenPattern is what can be a segment of a webhook's path: the API server
// takes no other. Its length is what nobody guesses.
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

// paths is what the Secret of PathTokens records. Every token in it is
// accepted; the current one stands in the webhook configurations, or soon will.
type tokenState struct {
	current  string
	next     string // staged: accepted by all before anybody is told it
	previous string // until the configurations have current, and some time after
}

// pathKnowledge is what one replica knows beside the Secret: how long it has
// been so. Nothing in the Secret is dated, and so no two clocks have to agree.
type localTokenState struct {
	lastState    tokenState
	lastAge      time.Duration // since last was read
	stagedFor    time.Duration // for how long next has been known
	publishedFor time.Duration // for how long current has stood in the configurations; 0: it does not
}

const (
	stepTokenCreated  step = "created the token of the webhook path"
	stepTokenRestored step = "restored the token of the webhook path from memory"
	stepTokenStaged   step = "staged the next token of the webhook path"
	stepTokenPromoted step = "promoted the staged token of the webhook path"
	stepTokenRetired  step = "retired the previous token of the webhook path"
)

// pathRules decide when a token follows another.
type tokenRules struct {
	propagation time.Duration // until every replica has read what is staged
	retention   time.Duration // for which an old token is accepted once nobody needs it
}

// plan returns what the Secret should record, given what it does.
func (r tokenRules) plan(stored tokenState, k localTokenState) (p tokenState, steps []step) {
	p = stored
	did := func(s step) { steps = append(steps, s) }
	switch {
	case p.current == "" && k.lastState.current == "":
		p.current = newToken()
		did(stepTokenCreated)
	case p.current == "":
		// Whoever deleted it may have had a reason: another follows.
		p.current = k.lastState.current
		did(stepTokenRestored)
		if p.next == "" {
			p.next = newToken()
			did(stepTokenStaged)
		}
	case k.lastAge < r.propagation && p.editedSince(k.lastState): // else a whole rotation may have been missed
		p.current, p.next = k.lastState.current, p.current
		did(stepTokenStaged)
	}
	p = p.withoutDuplicates()
	// One at a time: as long as previous is there it may be what is called.
	if p.next != "" && p.previous == "" && k.stagedFor >= r.propagation {
		p = tokenState{current: p.next, previous: p.current}
		did(stepTokenPromoted)
	} else if p.previous != "" && k.publishedFor >= r.retention {
		p.previous = ""
		did(stepTokenRetired)
	}
	return p, steps
}

// edited reports whether somebody put another current token there: what no
// promotion leads to.
func (p tokenState) editedSince(last tokenState) bool {
	return last.current != "" && p.current != last.current && p.current != last.next && p.previous != last.current
}

// once takes out what stands there twice.
func (p tokenState) withoutDuplicates() tokenState {
	if p.next == p.current {
		p.next = ""
	}
	if p.previous == p.current || p.previous == p.next {
		p.previous = ""
	}
	return p
}

func (p tokenState) all() []string {
	var out []string
	for _, token := range []string{p.current, p.next, p.previous} {
		if token != "" {
			out = append(out, token)
		}
	}
	return out
}

// decodePaths reads what a Secret records; nil records nothing. What cannot be
// read is left out, and is in the error.
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

func (p *tokenState) fields() map[string]*string {
	return map[string]*string{keyToken: &p.current, keyNextToken: &p.next, keyPreviousToken: &p.previous}
}

// encodePaths writes p into a Secret and leaves alone what is not ours in it.
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
