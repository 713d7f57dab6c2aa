//go:build integration

package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// hasSchemas verifies that the schema of a definition on a real API server is
// structural.
func hasSchemas(t *testing.T, e *env.Env) {
	r := startWatcher(t, e.MustAddUser(t, "schemas", nil, rules(allowedTo())...).Config)
	r.ready(t)
	listed, _, err := List(t.Context(), e.MustAddUser(t, "schemas-list", nil, rules(allowedTo())...).Config)
	require.NoError(t, err)
	v, _ := r.store.View()
	for _, k := range v.Kinds() {
		require.NotNil(t, k.Schema(), k.Ref())
		props, err := k.Schema().Structural()
		require.NoError(t, err, k.Ref())
		assert.Equal(t, "object", props.Properties["spec"].Type, k.Ref())
		assert.True(t, k.Schema().Same(listed.Kind(k.Ref()).Schema()), "%s is read in the same way by all", k.Ref())
	}
}
