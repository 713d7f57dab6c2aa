package certs

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"overrule.dev/overrule/test/logbuffer"
)

// testTokens is a replica, which reads the Secret when a test calls step.
type testTokens struct {
	*PathTokens
	t    *testing.T
	logs logbuffer.Buffer
}

func newTestTokens(t *testing.T, s *sharedSecrets, c *clocktesting.FakeClock) *testTokens {
	t.Helper()
	r := &testTokens{t: t}
	r.PathTokens = NewPathTokens(s, "own", "overrule-path", r.logs.Logger())
	r.clock = c
	return r
}

func (r *testTokens) step() {
	r.t.Helper()
	require.NoError(r.t, r.sync(r.t.Context()))
}

func (r *testTokens) accepts(token string) bool {
	ok, known := r.Accepts(token)
	return ok && known
}

func (s *sharedSecrets) tokens() []string { return strings.Fields(string(s.stored.Data[keyToken])) }

// The Secret is deleted while a leader and another replica run, and a third one starts. At
// any time, all accept the token that is in the webhook configurations.
func TestTokenRotation(t *testing.T) {
	s, c := &sharedSecrets{}, clocktesting.NewFakeClock(epoch)
	leader, other := newTestTokens(t, s, c), newTestTokens(t, s, c)
	replicas := []*testTokens{leader, other}
	configured := ""
	step := func() {
		t.Helper()
		for _, r := range replicas {
			r.step()
			configured = leader.Token()
			leader.Published(configured)
			for _, each := range replicas {
				_, known := each.Accepts("")
				assert.True(t, !known || each.accepts(configured))
			}
		}
		c.Step(tokenPoll)
	}
	_, known := leader.Accepts("x")
	assert.False(t, known)
	require.EqualError(t, leader.Healthy(nil), "no token of the webhook path yet")
	step()
	require.NoError(t, leader.Healthy(nil))
	first := configured
	assert.Regexp(t, tokenPattern, first)
	assert.Equal(t, first, other.Token())
	assert.False(t, leader.accepts(first[1:]))

	s.stored = nil
	step()
	assert.Equal(t, first, configured, "other replicas may not have read the new one")
	require.Len(t, s.tokens(), 2)
	next := s.tokens()[0]
	replicas = append(replicas, newTestTokens(t, s, c)) // it has never read the first alone
	for range tokenSpread / tokenPoll {
		step()
	}
	assert.Equal(t, next, configured)
	for range tokenKeep / tokenPoll {
		step()
	}
	step()
	assert.Equal(t, []string{next}, s.tokens())
	for _, r := range replicas {
		assert.False(t, r.accepts(first), "it may be known to others")
	}
	step()
	assert.Equal(t, next, configured)
	for _, r := range replicas {
		assert.NotContains(t, r.logs.String(), first)
		assert.NotContains(t, r.logs.String(), next)
	}
}

// A token is kept as long as the leader could not write the one that follows it, or has
// ended.
func TestTokenInUseIsKept(t *testing.T) {
	s, c := &sharedSecrets{}, clocktesting.NewFakeClock(epoch)
	r := newTestTokens(t, s, c)
	r.step()
	first := r.Token()
	r.Published(first)
	s.stored = nil
	r.step()
	for _, published := range []string{first, s.tokens()[0], ""} {
		r.Published(published)
		c.Step(tokenKeep - 1)
		r.step()
		assert.True(t, r.accepts(first))
		assert.Len(t, s.tokens(), 2)
	}
}

func TestTokensOfTheUser(t *testing.T) {
	mine, old := strings.Repeat("a", 32), strings.Repeat("0", 128)
	s := &sharedSecrets{stored: &corev1.Secret{Data: map[string][]byte{keyToken: []byte(mine + "\n" + old + "\n")}}}
	s.stored.ResourceVersion = "1"
	r := newTestTokens(t, s, clocktesting.NewFakeClock(epoch))
	r.step()
	assert.True(t, r.accepts(mine) && r.accepts(old))
	assert.False(t, r.accepts(""))

	for name, invalid := range map[string]string{"short": mine[1:], "long": old + "0", "upper case": strings.ToUpper(mine), "with a slash": mine + "/"} {
		s.stored.Data[keyToken] = []byte(mine + "\n" + invalid)
		err := r.sync(t.Context())
		require.EqualError(t, err, "read secret own/overrule-path: the tokens must be 32 to 128 lower-case letters and digits, one per line: correct it, or delete it", name)
		r.record(err)
		require.EqualError(t, r.Problem(), err.Error()+"; the previous path tokens stay in use")
		assert.True(t, r.accepts(old), name)
		assert.Equal(t, mine+"\n"+invalid, string(s.stored.Data[keyToken]), "it is the user's")
		assert.NotContains(t, r.logs.String(), mine)
	}
	failing := &stubSecrets{stored: s.stored, failPut: errors.New("read only")}
	failing.stored.Data[keyToken] = []byte(mine)
	r.store.client = failing
	r.step()
	assert.True(t, r.accepts(mine), "it is not written")
}
