package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secret = `apiVersion: v1
kind: Secret
type: Opaque
metadata:
  name: s
  namespace: ns
  annotations: {last-applied: topsecret}
  labels: {topsecret: a}
data: {password: topsecret}
`

func TestNothingButItsNameIsReadOfASecret(t *testing.T) {
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "ns"}}
	indented := "  - " + strings.ReplaceAll(strings.TrimSpace(secret), "\n", "\n    ")
	for name, text := range map[string]string{
		"alone":           secret,
		"in a list":       "apiVersion: v1\nkind: List\nitems:\n" + indented,
		"in a typed list": "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: s, namespace: ns}\n  data: {password: topsecret}\n",
	} {
		set := readText(t, text)
		require.Len(t, set.Objects, 1, name)
		assert.Equal(t, want, set.Objects[0].Content(), name)
	}
	other := readText(t, strings.Replace(secret, "apiVersion: v1", "apiVersion: example.com/v1", 1))
	assert.Contains(t, other.Objects[0].Content(), "data", "a Secret of another group is another kind")
}

func TestErrorsDoNotQuoteSecrets(t *testing.T) {
	for _, more := range []string{
		"topsecret: 1\ntopsecret: 2\n", "? [topsecret]\n: 1\n", "a: *topsecret\n", "b: &b 1\na: *topsecret\n", "a: !!int topsecret\n", "a: [topsecret\n",
		"a: !!binary topsecret\n", "\ttopsecret: 1\n", "a: !!float topsecret\n", "a: {{ topsecret }}\n",
	} {
		_, err := Read([]string{"-"}, strings.NewReader(secret+more))
		require.ErrorIs(t, err, ErrFormat, more)
		assert.NotContains(t, err.Error(), "topsecret")
	}
	_, err := Read([]string{"-"}, strings.NewReader(secret+"topsecret: 1\ntopsecret: 2\n"))
	assert.ErrorContains(t, err, "standard input:1 (document 1): invalid manifest: yaml: line 11: the document has a Secret and cannot be parsed")
}
