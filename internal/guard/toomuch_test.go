package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// Once an evaluation has taken all of its time, or cost too much, whatever fails later is not
// an error, which would have the client retry a write that is too much each time.
func TestTooMuchIsNotRetried(t *testing.T) {
	v := world(t, base(infra, gatewayPolicy(hard)))
	retarget := change(v, read(t, v, policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: nowhere}]\n"+hard)))
	retarget.User = userOf("dev") // is there a substitute that remains?
	moved := change(v, read(t, v, gatewayPolicy("overrides: {strategy: patch, a: 2}")))
	moved.User = userOf("dev")
	const second = time.Second
	for name, c := range map[string]struct {
		change guard.Change
		// evaluated is how long the paths take, and waited how long each read and each
		// check of a permission takes. There are two seconds.
		evaluated, waited time.Duration
		budget            uint64
		down              bool // reads and checks fail at once
		want              string
	}{
		"the time was over before the namespace was read":     {change: retarget, evaluated: 3 * second, want: "TooMuch"},
		"it is over while the namespace is read":              {change: retarget, evaluated: 3 * second / 2, waited: second, want: "TooMuch"},
		"the API server takes the time":                       {change: retarget, waited: 3 * second, want: "error"},
		"the time was over before the permission was checked": {change: moved, evaluated: 3 * second, want: "TooMuch"},
		"it is over while the permission is checked":          {change: moved, evaluated: 3 * second / 2, waited: second, want: "TooMuch"},
		"the API server takes the time of a check":            {change: moved, waited: 3 * second, want: "error"},
		"the API server fails":                                {change: retarget, down: true, want: "error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*second)
				defer cancel()
				wait := func(ctx context.Context) error {
					if c.down {
						return errDown
					}
					if ctx.Err() != nil {
						return ctx.Err()
					}
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(c.waited):
						return nil
					}
				}
				g := &guard.Guard{Engine: effective.NewEngine(), Budget: c.budget, Permissions: waitingOwners{wait}, ReadLive: func(ctx context.Context, _ api.Ref) (snapshot.Object, error) {
					return nil, wait(ctx)
				}}
				slept := false
				d, err := g.Evaluate(ctx, v, c.change, func(effective.Pair) {
					if !slept {
						time.Sleep(c.evaluated)
						slept = true
					}
				})
				if c.want == "error" {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.True(t, d.Denied())
				assert.True(t, d.Cut)
				assert.Equal(t, api.ReasonTooMuch, d.Denials[0].Code)
			})
		})
	}
	t.Run("it costs too much, and the API server fails", func(t *testing.T) {
		v := world(t, base(gatewayPolicy(clip), routePolicy("a: 100")))
		live := &living{err: errDown}
		g := &guard.Guard{Engine: effective.NewEngine(), Budget: 1, ReadLive: live.look}
		d, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("app", "own"))}, nil)
		require.NoError(t, err)
		require.True(t, d.Denied())
		assert.Equal(t, api.ReasonTooMuch, d.Denials[0].Code)
		assert.NotEmpty(t, live.asked)
	})
}

var errDown = errors.New("down")

// waitingOwners denies every permission after a wait.
type waitingOwners struct{ wait func(context.Context) error }

func (w waitingOwners) MayOverride(ctx context.Context, _ *authenticationv1.UserInfo, _ api.Ref) (bool, error) {
	return false, w.wait(ctx)
}

func (waitingOwners) Check(api.Ref) string { return "" }

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
