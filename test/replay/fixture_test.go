package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// story is a history that a test writes.
type story struct {
	t       testing.TB
	version int64
	objects []*Object
	writes  []Write
	stored  map[string]*Object
	began   bool
}

// newStory returns a history whose initial state has the definitions of
// examples/crds, PolicyProfile, and the objects of a manifest.
func newStory(t testing.TB, manifest string) *story {
	t.Helper()
	s := &story{t: t, stored: make(map[string]*Object)}
	for _, pattern := range []string{"../../examples/crds/*.yaml", "../../deploy/crds/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			s.write(string(data) + "\nstatus: {conditions: [{type: Established, status: \"True\"}]}\n")
		}
	}
	s.write(manifest)
	s.began = true
	return s
}

// write creates or replaces the objects of a manifest, one after another.
func (s *story) write(manifest string) *story {
	s.t.Helper()
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		o := &Object{}
		require.NoError(s.t, yaml.Unmarshal([]byte(doc), &o.Object), doc)
		s.put(o)
	}
	return s
}

func (s *story) put(o *Object) {
	s.version++
	key := refOf(o).String()
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	o.SetUID(types.UID("uid-" + o.GetResourceVersion()))
	o.SetCreationTimestamp(metav1.NewTime(time.Unix(1_700_000_000+s.version, 0).UTC()))
	if old := s.stored[key]; old != nil {
		o.SetUID(old.GetUID())
		o.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	s.stored[key] = o
	if s.began {
		s.writes = append(s.writes, Write{s.version, refOf(o), o})
	} else {
		s.objects = append(s.objects, o)
	}
}

// edit changes a field of an object.
func (s *story) edit(object string, edit func(*Object)) *story {
	s.t.Helper()
	require.Contains(s.t, s.stored, object)
	o := &Object{Object: runtime.DeepCopyJSON(s.stored[object].Object)}
	edit(o)
	s.put(o)
	return s
}

// terminate sets the deletion timestamp of an object, as a deletion does that waits for
// finalizers.
func (s *story) terminate(object string) *story {
	s.t.Helper()
	return s.edit(object, func(o *Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_800_000_000, 0).UTC()}) })
}

// remove deletes an object.
func (s *story) remove(object string) *story {
	s.t.Helper()
	require.Contains(s.t, s.stored, object)
	s.version++
	s.writes = append(s.writes, Write{Version: s.version, Ref: refOf(s.stored[object])})
	delete(s.stored, object)
	return s
}

func (s *story) history() *History {
	return &History{Objects: s.objects, Writes: func(yield func(Write, error) bool) {
		for _, w := range s.writes {
			if !yield(w, nil) {
				return
			}
		}
	}}
}

// found replays the history and returns its findings: the operation, the object, the
// number of the write, from 1, and the reason codes.
func (s *story) found() []string {
	s.t.Helper()
	report, err := Replay(s.t.Context(), s.history())
	require.NoError(s.t, err)
	first := s.version - int64(len(s.writes))
	out := []string{}
	for _, f := range report.Findings {
		out = append(out, fmt.Sprintf("%s %s %d %v", f.Operation, f.Ref, f.Version-first, f.Codes))
	}
	return out
}

// The world of the tests: a gateway with a route, and a constraint that forbids two
// limits on one path.
const (
	base = `
apiVersion: v1
kind: Namespace
metadata: {name: infra, labels: {team: platform}}
---
apiVersion: v1
kind: Namespace
metadata: {name: app, labels: {routes: allowed}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: shop}
spec: {controllerName: example.com/gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: shop
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {routes: allowed}}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: other}
spec:
  gatewayClassName: shop
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: not-both}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{group: "", kind: Namespace, name: infra}]
  validations:
  - expression: "!(has(effective.limits) && has(effective.limits.gate) && has(effective.limits.route))"
    message: both limits are set
---
` + routeAtEdge
	routeAtEdge = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toys}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: all}]}
`
	above = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: infra, name: gate}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults: {strategy: merge, limits: {gate: {rates: [{limit: 5, window: 1s}]}}}
`
	below = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: app, name: toys}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toys}
  limits: {route: {rates: [{limit: 5, window: 1s}]}}
`
	gatewayAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}
`
)

// Objects of kinds without a built-in profile.
const (
	gatewayColor = `
apiVersion: policies.example.com/v1
kind: ColorPolicy
metadata: {namespace: infra, name: colors}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {colors: {dark: red}}
`
	colorProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: colors}
spec: {group: policies.example.com, kind: ColorPolicy, class: inherited, targets: {fields: [targetRef]}, blocks: {defaults: [defaults]}}
`
	glazeProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: glaze}
spec: {group: policies.example.com, kind: Glaze, class: direct, targets: {fields: [targetRef]}}
`
	glazeDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: glazes.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: Glaze, plural: glazes, singular: glaze}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
status: {conditions: [{type: Established, status: "True"}]}
`
)

func glaze(name string) string {
	return `
apiVersion: policies.example.com/v1
kind: Glaze
metadata: {namespace: app, name: ` + name + `}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toys}}
`
}

func routeAt(gateway string) string {
	return strings.Replace(routeAtEdge, "name: edge", "name: "+gateway, 1)
}
