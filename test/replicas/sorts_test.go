//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

// A pairSort is a sort of two writes, each of which is valid without the other.
// Together they violate a constraint: the one that is evaluated last is denied.
type pairSort struct {
	name string
	// prepared has the objects that exist before.
	prepared      string
	first, second pairWrite
	// code is the reason code of a denial.
	code api.ReasonCode
	// oneWay: only the second write is denied after the first. The other way round,
	// the first one reports an existing violation, and is allowed.
	oneWay bool
	// wide: the first write is evaluated on all paths.
	wide bool
}

// pairWrite creates an object or, with a patch, merges the patch into it.
type pairWrite struct{ manifest, patch string }

// send sends the write, and returns the resource version of the object.
func (w pairWrite) send(ctx context.Context, c client.Client, dryRun bool) (string, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(w.manifest), &object.Object); err != nil {
		return "", err
	}
	var err error
	switch {
	case w.patch == "" && dryRun:
		err = c.Create(ctx, object, client.DryRunAll)
	case w.patch == "":
		err = c.Create(ctx, object)
	case dryRun:
		err = c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(w.patch)), client.DryRunAll)
	default:
		err = c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(w.patch)))
	}
	return object.GetResourceVersion(), err
}

// stored reports whether the API server has the result of the write.
func (w pairWrite) stored(ctx context.Context, c client.Client) (bool, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(w.manifest), &object.Object); err != nil {
		return false, err
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || w.patch == "" {
		return err == nil, err
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return false, err
	}
	after, err := jsonpatch.MergePatch(before, []byte(w.patch))
	return jsonpatch.Equal(before, after), err
}

// text replaces the placeholders of pair n, pair-N and PairN, and those of the
// namespaces.
func (g tenant) text(manifest string, n int) string {
	number := fmt.Sprint(n)
	return strings.NewReplacer("pair-N", "pair-"+number, "PairN", "Pair"+number, "pairN", "pair"+number).Replace(g.expand(manifest))
}

func (g tenant) write(w pairWrite, n int) pairWrite {
	return pairWrite{g.text(w.manifest, n), g.text(w.patch, n)}
}

// pairConstraint forbids a combination of two limits on a path: each of a pair of
// policies sets one and is valid without the other.
const pairConstraint = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: INFRA}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{group: "", kind: Namespace, name: INFRA}]
  validations:
  - expression: "!(has(effective.limits) && has(effective.limits.gate) && has(effective.limits.route))"
    message: both limits are set
`

// Manifests of pairs.
const (
	pairGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: pair-N}
spec:
  gatewayClassName: shop
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
`
	pairRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: pair-N}
spec:
  parentRefs: [{namespace: INFRA, name: pair-N}]
  rules: [{name: all}]
`
	pairAbove = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: INFRA, name: pair-N}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: pair-N}
  defaults: {strategy: merge, limits: {gate: {rates: [{limit: 5, window: 1s}]}}}
`
	pairBelow = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: APP, name: pair-N}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: pair-N}
  limits: {route: {rates: [{limit: 5, window: 1s}]}}
`
	// The gateway pair-N-to gets the route, and a policy.
	pairMove = `{"spec":{"parentRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","namespace":"INFRA","name":"pair-N-to"}]}}`
	// The namespace is selected by the gateway once it has a label.
	pairNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: APP-pair-N}
`
	pairLabel       = `{"metadata":{"labels":{"pairs":"selected"}}}`
	pairListenerSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {namespace: APP, name: pair-N}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: INFRA, name: pair-N}
  listeners: [{name: extra, hostname: pair-N.example.com, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: Same}}}]
`
	// The new constraint is for a gateway that the constraint not-both does not
	// apply to.
	pairNewConstraint = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: pair-N}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{kind: Gateway, namespace: APP, name: pair-N}]
  validations: [{expression: "!(has(effective.limits) && has(effective.limits.gate) && has(effective.limits.route))"}]
`
)

// join joins manifests.
func join(manifests ...string) string { return strings.Join(manifests, "---") }

// pairSorts returns all sorts of pairs, that of two policies first.
func pairSorts() []pairSort {
	ofListenerSet := strings.NewReplacer("{namespace: INFRA, name: pair-N}", "{group: gateway.networking.k8s.io, kind: ListenerSet, name: pair-N}")
	elsewhere := strings.NewReplacer("APP", "APP-pair-N")
	below := strings.NewReplacer("INFRA", "APP", "name: pair-N}\nspec:\n  targetRef: {group: gateway.networking.k8s.io, kind: Gateway", "name: pair-N-gateway}\nspec:\n  targetRef: {group: gateway.networking.k8s.io, kind: Gateway")
	return []pairSort{
		{
			name: "policy and policy", code: api.ReasonRequirementUnmet,
			prepared: join(pairGateway, pairRoute),
			first:    pairWrite{manifest: pairAbove},
			second:   pairWrite{manifest: pairBelow},
		},
		{
			name: "route move and policy", code: api.ReasonRequirementUnmet,
			prepared: join(pairGateway, strings.ReplaceAll(pairGateway, "pair-N", "pair-N-to"), pairRoute, pairBelow),
			first:    pairWrite{pairRoute, pairMove},
			second:   pairWrite{manifest: strings.ReplaceAll(pairAbove, "pair-N", "pair-N-to")},
		},
		{
			name: "namespace label and policy", code: api.ReasonRequirementUnmet,
			prepared: join(pairNamespace, strings.Replace(pairGateway, "{from: All}}}]", "{from: Selector, selector: {matchLabels: {pairs: selected}}}}}]", 1),
				elsewhere.Replace(pairRoute), elsewhere.Replace(pairBelow)),
			first:  pairWrite{pairNamespace, pairLabel},
			second: pairWrite{manifest: pairAbove},
		},
		{
			name: "listener set and policy", code: api.ReasonRequirementUnmet,
			prepared: join(pairGateway, ofListenerSet.Replace(pairRoute), pairBelow),
			first:    pairWrite{manifest: pairListenerSet},
			second:   pairWrite{manifest: pairAbove},
		},
		{
			name: "constraint and policy", code: api.ReasonRequirementUnmet, oneWay: true, wide: true,
			prepared: join(below.Replace(pairGateway), below.Replace(pairRoute), pairBelow),
			first:    pairWrite{manifest: pairNewConstraint},
			second:   pairWrite{manifest: below.Replace(pairAbove)},
		},
	}
}
