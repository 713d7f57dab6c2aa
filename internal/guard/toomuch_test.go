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
		write string
		late  bool
	}{
		"another policy's condition": {routePolicy("a: 100"), false},
		"its own condition":          {gatewayPolicy(clip), false},
		"time":                       {routePolicy("a: 1"), true},
		"time, for very many rules":  {routePolicy(strings.Join(many, "\n")), true},
		"time, for a route":          {routeDoc("r", "[{}]", "g"), true},
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
			assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev), "the golden file tells the advice")
		})
	}
}
