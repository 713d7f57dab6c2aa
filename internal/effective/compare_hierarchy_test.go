package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// changedChains applies a change and returns what Compare visits in its scope: "+"
// is a new path, "-" a removed one, "~" one whose policies differ.
func changedChains(t testing.TB, before *snapshot.View, c snapshot.Change) []string {
	t.Helper()
	var out []string
	after := before.With(c)
	scope := effective.ScopeOf(before.Get(c.Ref), c.Object)
	require.NoError(t, effective.NewEngine().Compare(before, after, scope, unlimited(), func(p effective.Pair) error {
		p = policiesAlone(p)
		switch {
		case p.Before == nil:
			out = append(out, "+ "+chainOf(p.After))
		case p.After == nil:
			out = append(out, "- "+chainOf(p.Before))
		case p.Changed():
			was := chainOf(p.Before)
			out = append(out, "~ "+was+" -> "+chainOf(p.After)[strings.Index(chainOf(p.After), "|"):])
		}
		return nil
	}))
	return out
}

// policiesAlone drops the side of a pair without a policy.
func policiesAlone(p effective.Pair) effective.Pair {
	if p.After != nil && len(p.After.Outcomes) == 0 {
		p.After = nil
	}
	return p
}
