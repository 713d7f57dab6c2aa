//go:build long

package graph

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Graphviz reads what is written for it. It has to be installed.
func TestDOTIsParsed(t *testing.T) {
	for name, g := range map[string]*Graph{"hostile": hostileGraph(), "random": random(rand.New(rand.NewPCG(1, 2)))} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "dot", "-Tplain")
			cmd.Stdin = strings.NewReader(g.DOT())
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Run(), stderr.String())
			assert.Empty(t, stderr.String())
		})
	}
}
