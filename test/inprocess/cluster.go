package inprocess

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// Cluster is a control plane whose kubectl runs in-process.
type Cluster struct {
	*env.Env
	*Client
}

// Start boots a control plane for a test, as env.Start does.
func Start(tb testing.TB, opts ...env.Option) *Cluster {
	tb.Helper()
	e := env.Start(tb, opts...)
	client, err := New(e.User)
	require.NoError(tb, err)
	return &Cluster{e, client}
}

// Boot boots a control plane, as env.Boot does.
func Boot(ctx context.Context, opts ...env.Option) (*Cluster, error) {
	e, err := env.Boot(ctx, opts...)
	if err != nil {
		return nil, err
	}
	client, err := New(e.User)
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return &Cluster{e, client}, nil
}
