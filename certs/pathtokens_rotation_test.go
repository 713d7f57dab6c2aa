package certs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"overrule.dev/overrule/test/messages"
)

// tok returns a token of one repeated letter.
func tok(letter string) string { return strings.Repeat(letter, 32) }

var (
	tokA, tokB, tokC = tok("a"), tok("b"), tok("c")
	pathTimes        = tokenRules{propagation: 20 * time.Second, retention: 5 * time.Minute}
)

func TestTokenPlan(t *testing.T) {
	fresh := "a token that was not there before"
	for name, c := range map[string]struct {
		found tokenState
		k     localTokenState
		want  tokenState
		steps []step
	}{
		"stable":                        {found: tokenState{current: tokA}, k: localTokenState{lastState: tokenState{current: tokA}}, want: tokenState{current: tokA}},
		"nothing stored, nothing known": {want: tokenState{current: fresh}, steps: []step{stepTokenCreated}},
		"deleted: restored and rotated": {
			k:    localTokenState{lastState: tokenState{current: tokA}, lastAge: time.Hour},
			want: tokenState{current: tokA, next: fresh}, steps: []step{stepTokenRestored, stepTokenStaged},
		},
		"partly deleted: the staged one stays": {
			found: tokenState{next: tokB}, k: localTokenState{lastState: tokenState{current: tokA, next: tokB}},
			want: tokenState{current: tokA, next: tokB}, steps: []step{stepTokenRestored},
		},
		"replaced": {
			found: tokenState{current: tokB}, k: localTokenState{lastState: tokenState{current: tokA}},
			want: tokenState{current: tokA, next: tokB}, steps: []step{stepTokenStaged},
		},
		"replaced, as a starting replica observes it": {found: tokenState{current: tokB}, want: tokenState{current: tokB}},
		"replaced, as a replica that missed a rotation observes it": {
			found: tokenState{current: tokB}, k: localTokenState{lastState: tokenState{current: tokA}, lastAge: 20 * time.Second}, want: tokenState{current: tokB},
		},
		"promoted by another replica": {
			found: tokenState{current: tokB, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokA, next: tokB}},
			want: tokenState{current: tokB, previous: tokA},
		},
		"staged and promoted between two reads": {
			found: tokenState{current: tokB, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokA}}, want: tokenState{current: tokB, previous: tokA},
		},
		"staged a moment ago": {
			found: tokenState{current: tokA, next: tokB}, k: localTokenState{lastState: tokenState{current: tokA, next: tokB}, stagedFor: 20*time.Second - 1},
			want: tokenState{current: tokA, next: tokB},
		},
		"staged for long enough": {
			found: tokenState{current: tokA, next: tokB}, k: localTokenState{lastState: tokenState{current: tokA, next: tokB}, stagedFor: 20 * time.Second},
			want: tokenState{current: tokB, previous: tokA}, steps: []step{stepTokenPromoted},
		},
		"staged while the previous may still be used": {
			found: tokenState{current: tokB, next: tokC, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokB, next: tokC, previous: tokA}, stagedFor: time.Hour},
			want: tokenState{current: tokB, next: tokC, previous: tokA},
		},
		"in the configurations a moment ago": {
			found: tokenState{current: tokB, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokB, previous: tokA}, publishedFor: 5*time.Minute - 1},
			want: tokenState{current: tokB, previous: tokA},
		},
		"in the configurations for long enough": {
			found: tokenState{current: tokB, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokB, previous: tokA}, publishedFor: 5 * time.Minute},
			want: tokenState{current: tokB}, steps: []step{stepTokenRetired},
		},
		"the same three times": {
			found: tokenState{current: tokA, next: tokA, previous: tokA}, k: localTokenState{lastState: tokenState{current: tokA}}, want: tokenState{current: tokA},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, steps := pathTimes.plan(c.found, c.k)
			for _, pair := range []struct{ got, want *string }{{&got.current, &c.want.current}, {&got.next, &c.want.next}} {
				if *pair.want == fresh {
					assert.Regexp(t, "^[0-9a-f]{64}$", *pair.got)
					assert.NotEqual(t, tokA, *pair.got)
					*pair.want = *pair.got
				}
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.steps, steps)
			again, steps := pathTimes.plan(got, localTokenState{lastState: got})
			assert.Equal(t, got, again, "plan is idempotent")
			assert.Empty(t, steps)
		})
	}
}

func TestNewTokens(t *testing.T) {
	a, b := newToken(), newToken()
	assert.NotEqual(t, a, b)
	assert.Regexp(t, tokenPattern, a)
	assert.Empty(t, validation.IsDNS1123Subdomain(a), "the API server accepts no other segment")
}

func TestTokenSecretKeepsOtherKeys(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"theirs": []byte("x"), keyPreviousToken: []byte("old")}}
	p := tokenState{current: tokA, next: tokB}
	encodeTokens(p, secret)
	assert.Equal(t, map[string][]byte{"theirs": []byte("x"), keyToken: []byte(tokA), keyNextToken: []byte(tokB)}, secret.Data)
	got, err := decodeTokens(secret)
	require.NoError(t, err)
	assert.Equal(t, p, got)
	got, err = decodeTokens(nil)
	require.NoError(t, err)
	assert.Equal(t, tokenState{}, got)
}

func TestInvalidTokenIsIgnoredAndNotLogged(t *testing.T) {
	for name, data := range map[string]string{
		"too short": tok("s")[1:], "upper case": strings.ToUpper(tokA), "a line end": tokA + "\n", "a slash": tokA + "/", "too long": strings.Repeat("x", 129),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeTokens(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "overrule-path"},
				Data:       map[string][]byte{keyToken: []byte(data), keyNextToken: []byte(tokB)},
			})
			require.ErrorIs(t, err, ErrNoToken)
			var of *SecretError
			require.ErrorAs(t, err, &of)
			assert.Equal(t, "own/overrule-path token", of.Namespace+"/"+of.Name+" "+of.Key)
			messages.Golden(t, err.Error())
			assert.Equal(t, tokenState{next: tokB}, got)
		})
	}
}
