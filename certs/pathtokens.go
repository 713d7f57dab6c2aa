package certs

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

const (
	keyToken    = "token"          // of the Secret: the tokens, one per line
	tokenPoll   = 5 * time.Second  // how often they are read
	tokenSpread = 20 * time.Second // after which every replica has read a new one
	tokenKeep   = 5 * time.Minute  // for which old ones are kept after the configurations have the new one
)

// tokenPattern: the API server rejects other paths, and a short token can be guessed.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{32,128}$`)

// PathTokens are the tokens with which the path of a webhook call must end, in a Secret that
// all replicas share. Only clients that can read it or the webhook configurations know them.
// All are accepted. Once every replica has read the first, the configurations get it; later
// the others are removed. If the Secret is deleted, a new token precedes those in use.
type PathTokens struct {
	held[[]string]
	*publisher   // of the token for the configurations
	clock        clock.Clock
	store        secretStore
	firstKnownAt time.Time                 // only used by the loop
	publishedAt  atomic.Pointer[time.Time] // since when the configurations have the first token; nil: they do not
}

// NewPathTokens returns tokens that are not known before Start.
func NewPathTokens(secrets corev1client.SecretsGetter, namespace, name string, log logr.Logger) *PathTokens {
	t := &PathTokens{publisher: newPublisher(), clock: clock.RealClock{}, store: secretStore{secrets.Secrets(namespace), namespace, name}}
	t.held = newHeld[[]string](log, "path tokens", errors.New("no token of the webhook path yet"))
	return t
}

// Start manages the tokens until ctx ends, and then returns nil. Call it once.
func (t *PathTokens) Start(ctx context.Context) error {
	return t.run(ctx, t.clock, func(ctx context.Context) (time.Duration, error) { return tokenPoll, t.sync(ctx) })
}

func (t *PathTokens) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	secret, err := t.store.read(ctx)
	if err != nil {
		return err
	}
	tokens := strings.Fields(string(secret.Data[keyToken]))
	for _, token := range tokens {
		if !tokenPattern.MatchString(token) {
			return t.store.wrap("read", errors.New("the tokens must be 32 to 128 lower-case letters and digits, one per line: correct it, or delete it"))
		}
	}
	if len(tokens) == 0 {
		tokens = append([]string{strings.ToLower(rand.Text() + rand.Text())}, t.current()...)
	} else if at := t.publishedAt.Load(); at != nil && t.current()[0] == tokens[0] && t.clock.Since(*at) >= tokenKeep {
		tokens = tokens[:1]
	} else {
		t.accept(tokens) // even if the Secret cannot be written
	}
	if err := t.store.write(ctx, secret, corev1.SecretTypeOpaque, func(s *corev1.Secret) { s.Data[keyToken] = []byte(strings.Join(tokens, "\n")) }); err != nil {
		return err
	}
	t.accept(tokens)
	return nil
}

// accept accepts tokens, and then publishes the one for the configurations.
func (t *PathTokens) accept(tokens []string) {
	if previous := t.current(); len(previous) == 0 || previous[0] != tokens[0] {
		t.firstKnownAt = t.clock.Now()
		t.publishedAt.Store(nil)
		t.log.Info("path token loaded", "accepted", len(tokens)) // never the token
	}
	t.value.Store(&tokens)
	configured := tokens[0]
	if len(tokens) > 1 && t.clock.Since(t.firstKnownAt) < tokenSpread {
		configured = tokens[1]
	}
	t.publish([]byte(configured))
}

// Accepts reports whether a path with this token is accepted, in a time that does not
// depend on the token. known is false before any token is known.
func (t *PathTokens) Accepts(token string) (ok, known bool) {
	tokens := t.current()
	for _, accepted := range tokens {
		same := subtle.ConstantTimeCompare([]byte(accepted), []byte(token)) == 1
		ok = ok || same
	}
	return ok, len(tokens) > 0
}

// Token returns the token for the webhook configurations; "" until known.
func (t *PathTokens) Token() string { return string(t.get()) }

// Published reports that the webhook configurations have a token.
func (t *PathTokens) Published(token string) {
	if tokens := t.current(); len(tokens) == 0 || tokens[0] != token {
		t.publishedAt.Store(nil)
	} else if now := t.clock.Now(); t.publishedAt.Load() == nil {
		t.publishedAt.Store(&now)
	}
}
