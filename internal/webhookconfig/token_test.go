package webhookconfig

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const magic = "0123456789abcdef0123456789abcdef"

// spoken is a source of tokens that a test drives.
type spoken struct{ *trust }

func (s spoken) Token() string          { return string(s.CABundle()) }
func (s spoken) Published(token string) { s.trust.Published([]byte(token)) }

func TestTheConfigurationsHaveTheTokenAsSoonAsThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := spoken{newTrust("")}
		o := register(t, "ca", func(r *Registrar) { r.Tokens = words })
		assert.Zero(t, o.written(), "nobody is to be sent to a path that is not known")

		words.rotate(magic)
		synctest.Wait()
		assert.Equal(t, 2, o.written())
		assert.Equal(t, []string{magic}, words.told())
		for _, action := range o.api.Actions() {
			if patch, ok := action.(interface{ GetPatch() []byte }); ok {
				assert.Contains(t, string(patch.GetPatch()), `/`+magic+`"`)
			}
		}
		assert.NotContains(t, o.log.String(), magic)
	})
}

func TestAWriteThatFailedToldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := spoken{newTrust(magic)}
		register(t, "", func(r *Registrar) { r.Tokens = words })
		assert.Empty(t, words.told(), "there is no bundle yet")
	})
}

func TestEveryEntryOfTheConfigurationsEndsWithTheToken(t *testing.T) {
	c := configuration()
	c.Token = magic
	validating, err := json.Marshal(c.Validating())
	require.NoError(t, err)
	assert.Len(t, c.Validating().Webhooks, strings.Count(string(validating), `"path":"/validate/`+magic+`"`))
	mutating, err := json.Marshal(c.Mutating())
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(mutating), `"path":"/mutate/`+magic+`"`))
}
