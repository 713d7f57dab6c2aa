package guard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// What there is to do about a write that is too much hangs on what it is.
func TestTooMuchAdvice(t *testing.T) {
	v := world(t, base(gatewayPolicy(clip)))
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprintf("k%d: 1", i)
	}
	for name, c := range map[string]struct {
		write  string
		late   bool
		advice string
	}{
		"another policy's condition": {routePolicy("a: 100"), false, "; ask the owner of infra/top to simplify its conditions"},
		"its own condition":          {gatewayPolicy(clip), false, "; simplify its conditions, or give it fewer targets"},
		"time":                       {routePolicy("a: 1"), true, "; split the change into smaller writes, or ask the cluster administrator"},
		"time, for very many rules":  {routePolicy(strings.Join(many, "\n")), true, "; it has 201 rules: split the policy, or give it fewer targets"},
		"time, for a route":          {routeDoc("r", "[{}]", "g"), true, "; split the change into smaller writes, or ask the cluster administrator"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.late {
				cancel()
			}
			g := &guard.Guard{Engine: effective.NewEngine(), Budget: 1}
			ev, err := g.Evaluate(ctx, v, change(v, read(t, v, c.write)), nil)
			require.NoError(t, err)
			require.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
			assert.True(t, strings.HasSuffix(ev.Denials[0].Message(), c.advice), ev.Denials[0].Message())
		})
	}
}
