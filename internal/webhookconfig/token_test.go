package webhookconfig

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testToken = "0123456789abcdef0123456789abcdef"

// fakeTokens is a source of tokens that a test controls.
type fakeTokens struct{ *fakeAuthority }

func (s fakeTokens) Token() string          { return string(s.CABundle()) }
func (s fakeTokens) Published(token string) { s.fakeAuthority.Published([]byte(token)) }

func TestTokenIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := fakeTokens{newFakeAuthority("")}
		o := startReconciler(t, "ca", func(r *Reconciler) { r.Tokens = words })
		assert.Zero(t, o.writeCount(), "no path is written before the token is known")

		words.rotate(testToken)
		synctest.Wait()
		assert.Equal(t, 2, o.writeCount())
		assert.Equal(t, []string{testToken}, words.publishedBundles())
		for _, action := range o.api.Actions() {
			if patch, ok := action.(interface{ GetPatch() []byte }); ok {
				assert.Contains(t, string(patch.GetPatch()), `/`+testToken+`"`)
			}
		}
		assert.NotContains(t, o.log.String(), testToken)
	})
}

func TestFailedWritePublishesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := fakeTokens{newFakeAuthority(testToken)}
		startReconciler(t, "", func(r *Reconciler) { r.Tokens = words })
		assert.Empty(t, words.publishedBundles(), "there is no bundle yet")
	})
}

func TestEveryPathHasToken(t *testing.T) {
	c := configuration()
	c.Token = testToken
	validating, err := json.Marshal(c.Validating())
	require.NoError(t, err)
	assert.Len(t, c.Validating().Webhooks, strings.Count(string(validating), `"path":"/validate/`+testToken+`"`))
	mutating, err := json.Marshal(c.Mutating())
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(mutating), `"path":"/mutate/`+testToken+`"`))
}
