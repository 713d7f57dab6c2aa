package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// owners lets each user remove the overrides of the policies listed for it, by
// namespace/name; "*" stands for all.
type owners struct {
	may   map[string][]string
	err   error
	asked []string
}

func (o *owners) MayOverride(_ context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error) {
	o.asked = append(o.asked, policy.String())
	name := ""
	if user != nil {
		name = user.Username
	}
	return slices.Contains(o.may[name], "*") || slices.Contains(o.may[name], policy.Key()), o.err
}

func (o *owners) Check(policy api.Ref) string { return "check " + policy.String() }

// boss may remove all overrides, dev none.
func bossAndDev() *owners { return &owners{may: map[string][]string{"boss": {"*"}}} }

// evaluateAs evaluates a change by a user.
func evaluateAs(t testing.TB, r guard.Permissions, user string, v *snapshot.View, c guard.Change) *guard.Decision {
	t.Helper()
	c.User = userOf(user)
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Permissions: r}).Evaluate(t.Context(), v, c, nil)
	require.NoError(t, err)
	return ev
}

// findingsOf shows the findings with a reason that begins so.
func findingsOf(t testing.TB, ev *guard.Decision, code string) []string {
	t.Helper()
	var out []string
	for _, text := range findings(t, ev) {
		if _, rest, _ := strings.Cut(text, " "); strings.HasPrefix(rest, code) {
			out = append(out, text)
		}
	}
	return out
}

// twoTops are a gateway policy of infra and a route policy of app, each with an
// override.
func twoTops() string {
	return base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), routePolicy("overrides: {strategy: patch, b: 1}"))
}

const topLost = "OverrideEvaded a Paint infra/top: 2 paths, Listener infra/h#http"

// Who may remove the overrides of one policy may not remove those of another.
func TestPermissionsPerPolicy(t *testing.T) {
	v := world(t, docs(twoTops(), gatewayDoc("h", "istio", "http"), policyDoc("Paint", "infra", "second", toGateway+"overrides: {strategy: patch, c: 1}")))
	c := change(v, read(t, v, routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "h")))
	second := strings.NewReplacer(" a ", " c ", "infra/top", "infra/second").Replace(topLost)
	tests := map[string]struct {
		may  []string
		want []string
	}{
		"none":         {nil, []string{"Deny " + topLost, "Deny " + second}},
		"one of them":  {[]string{"infra/top"}, []string{"Deny " + second, "Warn " + topLost}},
		"all of them":  {[]string{"infra/top", "infra/second"}, []string{"Warn " + topLost, "Warn " + second}},
		"another one":  {[]string{"app/own"}, []string{"Deny " + topLost, "Deny " + second}},
		"every policy": {[]string{"*"}, []string{"Warn " + topLost, "Warn " + second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &owners{may: map[string][]string{"dev": test.may}}
			assert.Equal(t, test.want, findingsOf(t, evaluateAs(t, o, "dev", v, c), "Override"))
			assert.Equal(t, []string{"Paint infra/second", "Paint infra/top"}, o.asked, "each once")
		})
	}
}

// No permission is checked unless an override would be lost.
func TestPermissionsAreCheckedOnlyBeforeDenial(t *testing.T) {
	v := world(t, twoTops())
	o := bossAndDev()
	for _, doc := range []string{
		gatewayPolicy("overrides: {strategy: patch, a: 1}\ndefaults: {strategy: patch, c: 1}"),
		routePolicy("overrides: {strategy: patch, b: 1}\nc: 1"), routeDoc("r", "[{}]"), gatewayDoc("g", "istio", "http", "alt"),
	} {
		assert.Empty(t, findingsOf(t, evaluateAs(t, o, "dev", v, change(v, read(t, v, doc))), "Override"), doc)
	}
	assert.Empty(t, o.asked)
}

// Without Permissions no one is permitted, and the check is the general one.
func TestWithoutRightsNoOneIsPermitted(t *testing.T) {
	v := world(t, twoTops())
	ev := evaluate(t, v, routePolicy("a: 1"))
	assert.Equal(t, []string{
		"Deny OverrideRemoved b Paint app/own: 2 paths",
	}, findingsOf(t, ev, "OverrideRemoved"))
}

// A write is not let through, and not denied either, where it cannot be determined
// whether the user may.
func TestPermissionCheckFails(t *testing.T) {
	down := errors.New("no answer")
	v := world(t, twoTops())
	g := &guard.Guard{Engine: effective.NewEngine(), Permissions: &owners{err: down}}
	t.Run("of the override that is lost", func(t *testing.T) {
		_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, routePolicy("a: 1"))), nil)
		require.ErrorIs(t, err, guard.ErrPermissions)
		require.ErrorIs(t, err, down)
		require.EqualError(t, err, "cannot determine whether the user is allowed to remove overrides: no answer")
	})
	t.Run("of the one that stands in for it", func(t *testing.T) {
		// infra/second is the higher one, by its name
		v := world(t, docs(twoTops(), policyDoc("Paint", "infra", "second", toGateway+"overrides: {strategy: patch, a: 1}")))
		g := &guard.Guard{Engine: effective.NewEngine(), Permissions: &oneAnswer{err: down}}
		away := policyDoc("Paint", "infra", "second", "targetRefs: [{kind: Gateway, name: nowhere}]\noverrides: {strategy: patch, a: 1}")
		_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, away)), nil)
		require.ErrorIs(t, err, guard.ErrPermissions)
	})
	t.Run("is no matter where no override is lost", func(t *testing.T) {
		_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, routeDoc("r", "[{}]"))), nil)
		require.NoError(t, err)
	})
}

// oneAnswer says no once, and fails from then on.
type oneAnswer struct {
	err   error
	asked int
}

func (o *oneAnswer) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	if o.asked++; o.asked == 1 {
		return false, nil
	}
	return false, o.err
}

func (*oneAnswer) Check(api.Ref) string { return "" }

func userOf(name string) *authenticationv1.UserInfo {
	return &authenticationv1.UserInfo{Username: name}
}
