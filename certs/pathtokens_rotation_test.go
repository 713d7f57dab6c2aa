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
)

// tok is a token of one letter.
func tok(letter string) string { return strings.Repeat(letter, 32) }

var (
	tokA, tokB, tokC = tok("a"), tok("b"), tok("c")
	pathTimes        = pathRules{spread: 20 * time.Second, keep: 5 * time.Minute}
)

func TestATokenFollowsAnotherInSteps(t *testing.T) {
	fresh := "a token that was not there before"
	for name, c := range map[string]struct {
		found paths
		k     pathKnowledge
		want  paths
		steps []step
	}{
		"stable":                        {found: paths{current: tokA}, k: pathKnowledge{last: paths{current: tokA}}, want: paths{current: tokA}},
		"nothing stored, nothing known": {want: paths{current: fresh}, steps: []step{stepTokenCreated}},
		"deleted: written again, and followed": {
			k:    pathKnowledge{last: paths{current: tokA}, lastAge: time.Hour},
			want: paths{current: tokA, next: fresh}, steps: []step{stepTokenRestored, stepTokenStaged},
		},
		"deleted by half: what is staged stays": {
			found: paths{next: tokB}, k: pathKnowledge{last: paths{current: tokA, next: tokB}},
			want: paths{current: tokA, next: tokB}, steps: []step{stepTokenRestored},
		},
		"another one put there": {
			found: paths{current: tokB}, k: pathKnowledge{last: paths{current: tokA}},
			want: paths{current: tokA, next: tokB}, steps: []step{stepTokenStaged},
		},
		"another one put there, to one who starts": {found: paths{current: tokB}, want: paths{current: tokB}},
		"another one, to one who missed a rotation": {
			found: paths{current: tokB}, k: pathKnowledge{last: paths{current: tokA}, lastAge: 20 * time.Second}, want: paths{current: tokB},
		},
		"promoted by another replica": {
			found: paths{current: tokB, previous: tokA}, k: pathKnowledge{last: paths{current: tokA, next: tokB}},
			want: paths{current: tokB, previous: tokA},
		},
		"staged and promoted between two looks": {
			found: paths{current: tokB, previous: tokA}, k: pathKnowledge{last: paths{current: tokA}}, want: paths{current: tokB, previous: tokA},
		},
		"staged a moment ago": {
			found: paths{current: tokA, next: tokB}, k: pathKnowledge{last: paths{current: tokA, next: tokB}, stagedFor: 20*time.Second - 1},
			want: paths{current: tokA, next: tokB},
		},
		"staged for long enough": {
			found: paths{current: tokA, next: tokB}, k: pathKnowledge{last: paths{current: tokA, next: tokB}, stagedFor: 20 * time.Second},
			want: paths{current: tokB, previous: tokA}, steps: []step{stepTokenPromoted},
		},
		"staged while the previous may still be called": {
			found: paths{current: tokB, next: tokC, previous: tokA}, k: pathKnowledge{last: paths{current: tokB, next: tokC, previous: tokA}, stagedFor: time.Hour},
			want: paths{current: tokB, next: tokC, previous: tokA},
		},
		"in the configurations a moment ago": {
			found: paths{current: tokB, previous: tokA}, k: pathKnowledge{last: paths{current: tokB, previous: tokA}, publishedFor: 5*time.Minute - 1},
			want: paths{current: tokB, previous: tokA},
		},
		"in the configurations for long enough": {
			found: paths{current: tokB, previous: tokA}, k: pathKnowledge{last: paths{current: tokB, previous: tokA}, publishedFor: 5 * time.Minute},
			want: paths{current: tokB}, steps: []step{stepTokenRetired},
		},
		"the same three times": {
			found: paths{current: tokA, next: tokA, previous: tokA}, k: pathKnowledge{last: paths{current: tokA}}, want: paths{current: tokA},
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
			again, steps := pathTimes.plan(got, pathKnowledge{last: got})
			assert.Equal(t, got, again, "planned again it stays")
			assert.Empty(t, steps)
		})
	}
}

func TestTokensAreNeverTheSameAndFitAPath(t *testing.T) {
	a, b := newToken(), newToken()
	assert.NotEqual(t, a, b)
	assert.Regexp(t, tokenPattern, a)
	assert.Empty(t, validation.IsDNS1123Subdomain(a), "the API server takes no other segment")
}

func TestTheSecretOfAPathKeepsItAndWhatIsNotOurs(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"theirs": []byte("x"), keyPreviousToken: []byte("old")}}
	p := paths{current: tokA, next: tokB}
	encodePaths(p, secret)
	assert.Equal(t, map[string][]byte{"theirs": []byte("x"), keyToken: []byte(tokA), keyNextToken: []byte(tokB)}, secret.Data)
	got, err := decodePaths(secret)
	require.NoError(t, err)
	assert.Equal(t, p, got)
	got, err = decodePaths(nil)
	require.NoError(t, err)
	assert.Equal(t, paths{}, got)
}

func TestATokenThatIsNoneIsLeftOutAndNotTold(t *testing.T) {
	for name, data := range map[string]string{
		"too short": tok("s")[1:], "upper case": strings.ToUpper(tokA), "a line end": tokA + "\n", "a slash": tokA + "/", "too long": strings.Repeat("x", 129),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodePaths(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "overrule-path"},
				Data:       map[string][]byte{keyToken: []byte(data), keyNextToken: []byte(tokB)},
			})
			require.ErrorIs(t, err, ErrNoToken)
			assert.EqualError(t, err, "secret own/overrule-path: token: no token: at least 32 lower-case letters and digits; it will be written anew")
			assert.Equal(t, paths{next: tokB}, got)
		})
	}
}
