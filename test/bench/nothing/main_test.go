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
		"an address without a port": {options{webhook: "127.0.0.1"}, "read -webhook-bind-address: address 127.0.0.1: missing port"},
		"a port that is no number":  {options{webhook: "127.0.0.1:https"}, "read -webhook-bind-address: the port of 127.0.0.1:https is no number: "},
		"no certificate":            {options{webhook: "127.0.0.1:0", metrics: "127.0.0.1:0", certificates: t.TempDir()}, "tls.crt: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, run(t.Context(), c.options), c.want)
		})
	}
}
