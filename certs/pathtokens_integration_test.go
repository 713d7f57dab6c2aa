//go:build integration

package certs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const pathSecretName = "overrule-path"

// tokenReplicas are replicas that share tokens, with a real API server, the real clock
// and short durations.
type tokenReplicas struct {
	*testReplicas
	log  logBuffer
	keep time.Duration
}

func newTokenReplicas(t *testing.T, keep time.Duration) *tokenReplicas {
	t.Helper()
	return &tokenReplicas{testReplicas: newTestReplicas(t), keep: keep}
}

func (d *tokenReplicas) startWith(client kubernetes.Interface) *PathTokens {
	d.t.Helper()
	tokens, err := NewPathTokens(PathTokensOptions{
		Secrets: client.CoreV1(), Namespace: d.namespace, SecretName: pathSecretName,
		PollInterval: 20 * time.Millisecond, Spread: 500 * time.Millisecond, Keep: d.keep,
		Log: funcr.New(func(_, args string) { d.log.WriteString(args + "\n") }, funcr.Options{Verbosity: 9}),
	})
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(d.t, tokens.Start(ctx)) })
	d.t.Cleanup(func() { cancel(); running.Wait() })
	return tokens
}

func (d *tokenReplicas) start(n int) []*PathTokens {
	d.t.Helper()
	var out []*PathTokens
	for range n {
		out = append(out, d.startWith(d.client))
	}
	for _, tokens := range out {
		d.eventually(func() error { return tokens.Healthy(nil) })
	}
	return out
}

func (d *tokenReplicas) edit(change func(*corev1.Secret)) {
	d.t.Helper()
	secrets := d.client.CoreV1().Secrets(d.namespace)
	d.eventually(func() error {
		secret, err := secrets.Get(d.t.Context(), pathSecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = secrets.Update(d.t.Context(), secret, metav1.UpdateOptions{})
		return err
	})
}

// awaitLog waits for a line of the log: it is written after what it says.
func (d *tokenReplicas) awaitLog(line string) {
	d.t.Helper()
	d.eventually(func() error {
		if log := d.log.String(); !strings.Contains(log, line) {
			return fmt.Errorf("the log lacks %q:\n%s", line, log)
		}
		return nil
	})
}

func (d *tokenReplicas) delete() {
	d.t.Helper()
	require.NoError(d.t, d.client.CoreV1().Secrets(d.namespace).Delete(d.t.Context(), pathSecretName, metav1.DeleteOptions{}))
}

// callContinuously calls every replica with the token of the leader, as an API server
// does that gets the token with a delay of less than keep. The returned function ends
// that, and returns the number of calls and of those that were rejected.
func callContinuously(leader *PathTokens, replicas []*PathTokens, keep time.Duration) (finish func() (calls, refused int)) {
	done := make(chan struct{})
	var calling sync.WaitGroup
	var calls, refused int
	calling.Go(func() {
		configured, previous := leader.Token(), leader.Token()
		var since time.Time // for how long the configured one may be published
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if i%50 == 0 { // the configurations are written, and API servers have what was in them before
				previous, configured = configured, leader.Token()
				if previous != configured {
					since = time.Now()
				}
				leader.Published(configured)
			}
			for _, replica := range replicas {
				for _, token := range []string{configured, previous} {
					calls++
					ok, _ := replica.Accepts(token)
					if !ok && (token == configured || time.Since(since) < keep) { // else this goroutine stood still
						refused++
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	return func() (int, int) { close(done); calling.Wait(); return calls, refused }
}

// awaitRotation waits until all replicas have another token than before, and returns it.
func (d *tokenReplicas) awaitRotation(replicas []*PathTokens, previous string) string {
	d.t.Helper()
	var now string
	d.eventually(func() error {
		now = replicas[0].Token()
		for i, r := range replicas {
			if token := r.Token(); token == previous || token != now {
				return fmt.Errorf("replica %d still has another token", i)
			}
		}
		return nil
	})
	return now
}

func TestReplicasShareTokens(t *testing.T) {
	d := newTokenReplicas(t, time.Hour)
	replicas := d.start(3)
	token := replicas[0].Token()
	for _, r := range replicas {
		assert.Equal(t, token, r.Token())
		ok, known := r.Accepts(token)
		assert.True(t, ok && known)
		for _, wrong := range []string{"", token[1:], token + "0", tokA} {
			ok, _ := r.Accepts(wrong)
			assert.False(t, ok, wrong)
		}
		assert.False(t, r.NeedLeaderElection())
	}
	secret, err := d.client.CoreV1().Secrets(d.namespace).Get(t.Context(), pathSecretName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{keyToken: []byte(token)}, secret.Data)
	assert.Equal(t, corev1.SecretTypeOpaque, secret.Type)
	d.awaitLog(string(stepTokenCreated))
	assert.NotContains(t, d.log.String(), token)
}

func TestEditsOfTheTokenSecretRejectNoCall(t *testing.T) {
	put := func(key, value string) func(*tokenReplicas, *corev1.Secret) {
		return func(_ *tokenReplicas, s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	for name, c := range map[string]struct {
		damage  func(*tokenReplicas, *corev1.Secret) // nil: it is deleted
		rotates bool
		wantLog string
	}{
		"deleted":                      {rotates: true, wantLog: string(stepTokenRestored)},
		"emptied":                      {func(_ *tokenReplicas, s *corev1.Secret) { s.Data = nil }, true, string(stepTokenRestored)},
		"no token in place of it":      {put(keyToken, "x"), true, "token: " + ErrNoToken.Error()},
		"another token in place of it": {put(keyToken, tokB), true, string(stepTokenStaged)},
		"one staged by hand":           {put(keyNextToken, tokB), true, string(stepTokenPromoted)},
		"a previous one added":         {put(keyPreviousToken, tokC), false, string(stepTokenRetired)},
		"keys of other clients":        {put("theirs", "x"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTokenReplicas(t, 200*time.Millisecond)
			replicas := d.start(3)
			previous := replicas[0].Token()
			finish := callContinuously(replicas[0], replicas, d.keep)
			if c.damage == nil {
				d.delete()
			} else {
				d.edit(func(s *corev1.Secret) { c.damage(d, s) })
			}
			now := previous
			if c.rotates {
				now = d.awaitRotation(replicas, previous)
				d.eventually(func() error {
					for _, r := range replicas {
						if ok, _ := r.Accepts(previous); ok {
							return fmt.Errorf("the old token is still accepted")
						}
					}
					return nil
				})
			}
			d.eventually(func() error {
				secret, err := d.client.CoreV1().Secrets(d.namespace).Get(t.Context(), pathSecretName, metav1.GetOptions{})
				if err == nil && (string(secret.Data[keyToken]) != now || len(secret.Data[keyNextToken])+len(secret.Data[keyPreviousToken]) > 0) {
					err = fmt.Errorf("the secret is still changing")
				}
				return err
			})
			d.awaitLog(c.wantLog)
			calls, refused := finish()
			assert.Zero(t, refused, "of %d calls", calls)
			assert.Positive(t, calls)
			assert.NotContains(t, d.log.String(), now)
			assert.NotContains(t, d.log.String(), previous)
		})
	}
}

func TestTokenIsAcceptedUntilNextIsPublished(t *testing.T) {
	d := newTokenReplicas(t, 50*time.Millisecond)
	replicas := d.start(2)
	previous := replicas[0].Token()
	d.delete()
	now := d.awaitRotation(replicas, previous)
	time.Sleep(300 * time.Millisecond) // six times its retention
	ok, _ := replicas[1].Accepts(previous)
	assert.True(t, ok, "the new one is not reported as published")
	replicas[0].Published(now)
	d.eventually(func() error {
		if ok, _ := replicas[1].Accepts(previous); ok {
			return fmt.Errorf("the old token is still accepted")
		}
		return nil
	})
}

func TestReadOnlyReplicaFollowsTokens(t *testing.T) {
	d := newTokenReplicas(t, time.Hour)
	config := rest.AnonymousClientConfig(d.config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	poor := d.startWith(client)
	d.eventually(func() error {
		if err := poor.Healthy(nil); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("want a reason why it is not ready, got: %w", err)
		}
		return nil
	})
	_, known := poor.Accepts(tokA)
	assert.False(t, known)
	assert.Empty(t, poor.Token())
}

func TestImmutableTokenSecretIsUsed(t *testing.T) {
	d := newTokenReplicas(t, time.Hour)
	replicas := d.start(2)
	token := replicas[0].Token()
	d.edit(func(s *corev1.Secret) { s.Immutable = new(true); s.Data[keyNextToken] = []byte(tokB) })
	d.eventually(func() error {
		if ok, _ := replicas[1].Accepts(tokB); !ok {
			return fmt.Errorf("the staged token is not accepted")
		}
		return nil
	})
	finish := callContinuously(replicas[0], replicas, d.keep)
	d.eventually(func() error {
		if log := d.log.String(); !strings.Contains(log, "update secret") || !strings.Contains(log, "immutable") {
			return fmt.Errorf("the failed write is not logged")
		}
		return nil
	})
	_, refused := finish()
	assert.Zero(t, refused)
	assert.Equal(t, token, replicas[0].Token())
}
