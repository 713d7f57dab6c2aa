package certs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

func TestInvalidOptions(t *testing.T) {
	tests := map[string]struct {
		change  func(*Options)
		wantErr string
	}{
		"no client":                    {func(o *Options) { o.Secrets = nil }, "no client for secrets"},
		"no namespace":                 {func(o *Options) { o.Namespace = "" }, `secret ""/"ca"`},
		"no name":                      {func(o *Options) { o.SecretName = "" }, `secret "own"/""`},
		"nothing to serve":             {func(o *Options) { o.Names = nil }, "names to serve []"},
		"an empty name":                {func(o *Options) { o.Names = []string{"a", ""} }, "none empty"},
		"leaves too short":             {func(o *Options) { o.LeafValidity = time.Second }, "1s is too short"},
		"an authority of too few leaf": {func(o *Options) { o.CAValidity = 89 * 24 * hour }, "less than 3 times the 720h0m0s"},
		"a negative wait":              {func(o *Options) { o.PublishTimeout = -1 }, "must not be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts := Options{Secrets: &stubSecrets{}, Namespace: "own", SecretName: "ca", Names: []string{"a"}}
			_, err := New(opts)
			require.NoError(t, err)
			test.change(&opts)
			_, err = New(opts)
			assert.ErrorContains(t, err, test.wantErr)
		})
	}
}

func TestAllErrorsOfOptionsAreReported(t *testing.T) {
	_, err := New(Options{LeafValidity: -1})
	assert.ErrorContains(t, err, "no client")
	assert.ErrorContains(t, err, "names to serve")
	assert.ErrorContains(t, err, "too short")
}

func (s *stubSecrets) Secrets(string) corev1client.SecretInterface { return s }
