package constraint_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

type m = map[string]any

// cluster compiles a ClusterPolicyConstraint on Paints; spec is YAML without its
// policyKind.
func cluster(t testing.TB, spec string) *constraint.Constraint {
	t.Helper()
	var o api.ClusterPolicyConstraint
	o.Name = "c"
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &o.Spec), spec)
	if o.Spec.PolicyKind == (api.ConstrainedKind{}) {
		o.Spec.PolicyKind = api.ConstrainedKind{Group: "example.com", Kind: "Paint"}
	}
	return constraint.FromClusterPolicyConstraint(&o)
}

// inApp compiles the same as a PolicyConstraint in namespace app.
func inApp(t testing.TB, spec string) *constraint.Constraint {
	t.Helper()
	var o api.PolicyConstraint
	o.Namespace, o.Name = "app", "c"
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &o.Spec), spec)
	o.Spec.PolicyKind = api.ConstrainedKind{Group: "example.com", Kind: "Paint"}
	return constraint.FromPolicyConstraint(&o)
}

// valid compiles a constraint, and requires it to be valid.
func valid(t testing.TB, spec string) *constraint.Constraint {
	t.Helper()
	c := cluster(t, spec)
	require.NoError(t, c.Invalid)
	return c
}

// effective returns the variables for an effective spec in YAML.
func effective(t testing.TB, spec string) *cel.Variables {
	t.Helper()
	v := decoded(t, spec)
	return &cel.Variables{Effective: func() any { return v }}
}

// decoded decodes YAML as the snapshot decodes JSON: integers are int64.
func decoded(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var v any
	require.NoError(t, json.UnmarshalCaseSensitivePreserveInts(data, &v))
	return v
}

// meter adds up costs, up to a limit.
type meter struct {
	spent, limit uint64
	err          error
}

func (p *meter) Spend(_ *merge.Policy, cost uint64) error {
	if p.spent += cost; p.err != nil && p.spent > p.limit {
		return p.err
	}
	return nil
}

// world implements Lookup for the tests of targets.
type world struct{}

func (world) NamespaceLabels(name string) labels.Set {
	if name == "app" {
		return labels.Set{"team": "a"}
	}
	return nil
}

func (world) LabelsOf(ref api.Ref) labels.Set {
	switch ref {
	case (&gateway.Class{Name: "istio"}).Ref():
		return labels.Set{"tier": "edge"}
	case api.Ref{Kind: "Service", Namespace: "app", Name: "cart"}:
		return labels.Set{"stage": "live"}
	default:
		return nil
	}
}

func (world) PortOf(service api.Ref, name string) int32 {
	if service == (api.Ref{Kind: "Service", Namespace: "app", Name: "cart"}) && name == "http" {
		return 80
	}
	return 0
}

// gatewayPath is a path from a gateway to a backend.
func gatewayPath() gateway.Path {
	g := &gateway.Gateway{Namespace: "infra", Name: "edge", Class: "istio", Labels: labels.Set{"public": "yes"}}
	r := &gateway.Route{
		Kind: "HTTPRoute", Namespace: "app", Name: "r", Labels: labels.Set{"team": "a"}, Hostnames: []string{"a.example.com"},
		Rules: []gateway.Rule{{}, {Name: "named"}},
	}
	return gateway.Path{
		Gateway: g, Listener: &gateway.Listener{Name: "http", Port: 80, Protocol: "HTTP", Hostname: "*.example.com"}, Route: r, Rule: 0,
		Backend: &gateway.Backend{Object: api.Ref{Kind: "Service", Namespace: "app", Name: "cart"}, Port: 80},
	}
}

// bySet is a path through a listener set, to the first rule of the route.
func bySet() gateway.Path {
	p := gatewayPath()
	p.Set = &gateway.ListenerSet{Namespace: "sets", Name: "s", Labels: labels.Set{"own": "yes"}}
	p.Listener, p.Backend = &gateway.Listener{Name: "tls", Port: 443, Protocol: "TLS"}, nil
	return p
}

// inMesh is a path of a mesh.
func inMesh(port int32) gateway.Path {
	p := gatewayPath()
	return gateway.Path{
		Service: &gateway.Service{Namespace: "app", Name: "cart", Labels: labels.Set{"stage": "live"}}, Port: port, Client: "shop",
		Route: p.Route, Rule: 1, Backend: &gateway.Backend{Object: api.Ref{Group: "example.com", Kind: "Bucket", Namespace: "store", Name: "b"}},
	}
}

// evaluate returns the requirements that are not met; all values may be shown.
func evaluate(c *constraint.Constraint, on *cel.Variables, m merge.Meter) ([]constraint.Unmet, error) {
	got, err := c.Evaluate(constraint.PathInput{Variables: on, Shown: func() *cel.Variables { return on }}, m)
	return got.Unmet, err
}

func isOn(c *constraint.Constraint, p *gateway.Path) bool {
	_, on := c.On(p, world{})
	return on
}
