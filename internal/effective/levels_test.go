package effective_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// chainOf formats a path with all its elements, and the policies on it from the
// highest to the lowest, as in "Gateway infra/g > Listener infra/g#http | a b".
func chainOf(e *effective.Effective) string {
	var elements, policies []string
	for _, x := range e.Path.Elements() {
		elements = append(elements, x.String())
	}
	for _, o := range e.Outcomes {
		policies = append(policies, o.Policy.Name)
	}
	return strings.TrimSpace(strings.Join(elements, " > ") + " | " + strings.Join(policies, " "))
}

// chains formats all paths of a kind that have a policy.
func chains(t testing.TB, v *snapshot.View, kind string) []string {
	t.Helper()
	var out []string
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		if e.Kind.Kind == kind {
			out = append(out, chainOf(e))
		}
	}
	return out
}

// probe returns a profile of a kind that can target any object.
func probe(spec string) string {
	return worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: free, classFrom: ['*']}\nstrategy: {allowed: [merge]}\n"+spec)
}

// probes is a policy for each target, named, in namespace app; each sets a rule
// of its own.
func probes(targets ...string) string {
	var out []string
	for _, target := range targets {
		name, ref, _ := strings.Cut(target, ": ")
		out = append(out, policyDoc("Probe", "app", name, fmt.Sprintf("targetRefs: [{%s}]\n'%s': 1", ref, name)))
	}
	return docs(out...)
}

// A policy whose class or Service does not exist has no target and no path.
func TestMissingTargetHasNoPath(t *testing.T) {
	v := world(t, docs(probe("levels: [GatewayClass, Gateway]"), gatewayDoc("g", "c", "http"), probes("class: kind: GatewayClass, name: c")))
	assert.Empty(t, chains(t, v, "Probe"))
	ref := paintRef("app", "class")
	ref.Kind = "Probe"
	out := outcomeOf(t, v, ref)
	assert.Equal(t, "TargetNotFound: GatewayClass c does not exist", string(out.State)+": "+out.Message)
	v = v.With(putChange(t, v, "kind: GatewayClass\nmetadata: {name: c}"))
	assert.Equal(t, []string{"GatewayClass c > Gateway infra/g | class"}, chains(t, v, "Probe"))
}
