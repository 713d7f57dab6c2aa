package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInvalidOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		want    string
	}{
		"an address without a port":   {options{webhook: "127.0.0.1"}, "invalid -webhook-bind-address: address 127.0.0.1: missing port"},
		"a port that is not a number": {options{webhook: "127.0.0.1:https"}, `invalid -webhook-bind-address "127.0.0.1:https": port must be a number: `},
		"no certificate":              {options{webhook: "127.0.0.1:0", metrics: "127.0.0.1:0", certificates: t.TempDir()}, "tls.crt: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, run(t.Context(), c.options), c.want)
		})
	}
}
