package graph

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

var authPolicy = api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}

func policyRef(name string) api.Ref {
	return api.Ref{Group: authPolicy.Group, Kind: authPolicy.Kind, Namespace: "ns", Name: name}
}

// elements returns the path from a gateway to a rule of a route.
func elements(gateway, route, rule string) []api.PathElement {
	return []api.PathElement{
		{Kind: "GatewayClass", Name: "class"},
		{Kind: "Gateway", Namespace: "infra", Name: gateway},
		{Kind: "Listener", Namespace: "infra", Name: gateway, Section: "http"},
		{Kind: "HTTPRoute", Namespace: "ns", Name: route},
		{Kind: "HTTPRouteRule", Namespace: "ns", Name: route, Section: rule},
	}
}

// overridden returns a path on which the policy of the gateway replaces a rule of the
// route's.
func overridden(gateway, route, rule string) Path {
	upper, lower := policyRef("of-"+gateway), policyRef("of-"+route)
	return Path{
		Kind: authPolicy, Elements: elements(gateway, route, rule),
		Rules: []api.RuleOrigin{{Rule: "sso", From: upper, Block: Overrides}},
		Policies: []Policy{
			{PolicyOnPath: api.PolicyOnPath{Policy: upper, State: api.Enforced}, At: 1, Blocks: []string{Overrides}},
			{PolicyOnPath: api.PolicyOnPath{Policy: lower, State: api.Overridden, Lost: []api.LostRule{
				{Rule: "sso", Block: "bare", To: upper, ToBlock: Overrides},
			}}, At: 3, Blocks: []string{Neither}},
		},
	}
}

func build(paths ...Path) *Graph {
	var b Builder
	for _, p := range paths {
		b.Add(p)
	}
	return b.Graph(Options{})
}

// box returns the only box of a kind.
func box(t *testing.T, g *Graph, kind string) *Box {
	t.Helper()
	var found []*Box
	for _, b := range g.Boxes {
		if b.Kind == kind {
			found = append(found, b)
		}
	}
	require.Len(t, found, 1, kind)
	return found[0]
}

func TestEqualPathsAreOne(t *testing.T) {
	g := build(overridden("edge", "a", "x"), overridden("edge", "a", "y"), overridden("edge", "b", "x"))
	kind, name := box(t, g, "HTTPRoute").Title()
	assert.Equal(t, "2 HTTPRoutes", kind)
	assert.Equal(t, "ns/a, ns/b", name)
	kind, name = box(t, g, "HTTPRouteRule").Title()
	assert.Equal(t, "3 HTTPRouteRules", kind)
	assert.Equal(t, "a#x, a#y, b#x", name)
	require.Len(t, g.Notes, 2)
	assert.True(t, g.Notes[1].Overrides())
	assert.Equal(t, []Line{{Text: "sso", Lost: true, Comment: "replaced by ns/of-edge"}}, g.Notes[0].Lines)
	kind, name = g.Notes[0].Title()
	assert.Equal(t, "2 AuthPolicies", kind)
	assert.Equal(t, "ns/of-a, ns/of-b", name)
	assert.Equal(t, []Line{{Text: "sso", Comment: "from ns/of-edge (overrides)"}}, box(t, g, "HTTPRouteRule").Results[0].Lines)
	assert.Empty(t, g.Collapsed) // all are named
	g = build(overridden("edge", "a", "x"), overridden("edge", "a", "y"), overridden("edge", "b", "x"), overridden("edge", "b", "y"))
	assert.Contains(t, g.Collapsed, "with equal outcomes: 4 HTTPRouteRules in 1 box.")
}

// Routes are not one if a rule, its origin, the state of a policy, a block, a parent or
// the winner differs.
func TestDifferentPathsAreNotOne(t *testing.T) {
	for name, change := range map[string]func(*Path){
		"rule":   func(p *Path) { p.Rules[0].Rule = "other" },
		"origin": func(p *Path) { p.Rules[0].From = policyRef("other") },
		"state":  func(p *Path) { p.Policies[1].State = api.Enforced },
		"block":  func(p *Path) { p.Policies[1].Blocks = []string{Defaults} },
		"lost":   func(p *Path) { p.Policies[1].Lost[0].Rule = "other" },
		"winner": func(p *Path) { p.Policies[1].Lost[0].To = policyRef("other") },
		"policy": func(p *Path) { p.Policies = p.Policies[:1] },
		"kind":   func(p *Path) { p.Kind.Kind = "RateLimitPolicy" },
		"parent": func(p *Path) { p.Elements = elements("other", "b", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			other := overridden("edge", "b", "x")
			change(&other)
			routes := 0
			for _, b := range build(overridden("edge", "a", "x"), other).Boxes {
				if b.Kind == "HTTPRoute" {
					routes++
				}
			}
			assert.Equal(t, 2, routes)
		})
	}
}

// Two routes on the same gateways with the same outcomes, but each on another one, are
// not equal.
func TestOutcomesByGateway(t *testing.T) {
	with := func(gateway, route, rule string) Path {
		p := overridden(gateway, route, "x")
		p.Rules[0].Rule, p.Rules[0].From = rule, policyRef("same")
		p.Policies = nil
		return p
	}
	g := build(with("g1", "a", "one"), with("g2", "a", "two"), with("g1", "b", "two"), with("g2", "b", "one"))
	var titles []string
	for _, b := range g.Boxes {
		for _, r := range b.Results {
			titles = append(titles, r.Title()+": "+r.Lines[0].Text)
		}
	}
	assert.Equal(t, []string{
		"In effect: AuthPolicy, via g1#http: one", "In effect: AuthPolicy, via g2#http: two",
		"In effect: AuthPolicy, via g1#http: two", "In effect: AuthPolicy, via g2#http: one",
	}, titles)
}

// A policy that is lost on some paths is not struck through, and says on how many.
func TestPartlyLost(t *testing.T) {
	kept := overridden("edge", "a", "y")
	kept.Rules[0].From = kept.Policies[1].Policy
	kept.Policies[1].State, kept.Policies[1].Lost = api.Enforced, nil
	kept.Rules[0].Block = "bare"
	g := build(overridden("edge", "a", "x"), kept)
	assert.Equal(t, []Line{{Text: "sso", Comment: "replaced by ns/of-edge on 1 of 2 paths"}}, g.Notes[0].Lines)
	assert.Equal(t, "no effect on 1 of 2 paths: overridden", g.Notes[0].Status)
}

// The picture shows less of more paths, until it fits.
func TestDetail(t *testing.T) {
	var b Builder
	for i := range 400 {
		p := overridden(fmt.Sprintf("edge-%d", i%2), fmt.Sprintf("r%d", i), "x")
		p.Rules = append(p.Rules, api.RuleOrigin{Rule: fmt.Sprintf("own-%d", i), From: p.Policies[1].Policy, Block: "bare"})
		b.Add(p)
	}
	g := b.Graph(Options{Nodes: 2000})
	assert.Empty(t, g.Collapsed)
	g = b.Graph(Options{})
	assert.Contains(t, g.Collapsed, "also with different outcomes: 400 HTTPRoutes in 2 boxes, 400 HTTPRouteRules in 2 boxes.")
	for _, r := range g.Boxes {
		for _, result := range r.Results {
			assert.Len(t, result.Lines, 12)
			assert.Equal(t, "and 190 more rules", result.Lines[11].Text)
		}
	}
	g = b.Graph(Options{Fits: func(*Graph) bool { return false }})
	assert.Len(t, g.Boxes, 5)
}

const hostile = "end \"'<img src=x onerror=alert(1)>]]>--><script>\x00\n`**x**` #quot; %% {a} | \\n & \xff 漢字"

// hostileGraph has texts that are syntax in one of the formats.
func hostileGraph() *Graph {
	p := overridden(hostile, hostile, hostile)
	p.Rules[0].Rule = hostile
	p.Policies[1].Message = hostile
	p.Policies[1].Lost[0].Rule = hostile
	var b Builder
	b.Add(p)
	b.AddPathless(api.Outcome{Policy: policyRef(hostile), Message: hostile})
	return b.Graph(Options{})
}

func TestSVGIsWellFormed(t *testing.T) {
	svg := hostileGraph().SVG(func(kind, _, name string) string { return "/" + kind + "?" + name })
	d := xml.NewDecoder(strings.NewReader(svg))
	allowed := []string{"svg", "title", "desc", "style", "rect", "text", "path", "g", "a"}
	links := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			assert.Contains(t, allowed, e.Name.Local)
			if e.Name.Local == "a" {
				links++
			}
		}
	}
	assert.Equal(t, 6, links) // class, gateway, route, rule and two policies
}

// No text can end a label of Mermaid, or be HTML in it.
func TestMermaidIsEscaped(t *testing.T) {
	text := hostileGraph().Mermaid()
	assert.NotContains(t, text, "<img")
	assert.NotContains(t, text, "`")
	for line := range strings.Lines(text) {
		assert.Contains(t, []int{0, 2}, strings.Count(line, `"`)%4, line)
	}
}

// random returns a picture of paths in which routes have several parents.
func random(r *rand.Rand) *Graph {
	var b Builder
	seen := make(map[string]bool)
	for range 60 {
		gateway, route, rule := fmt.Sprint("g", r.IntN(3)), fmt.Sprint("r", r.IntN(15)), fmt.Sprint("x", r.IntN(3))
		if seen[gateway+route+rule] {
			continue
		}
		seen[gateway+route+rule] = true
		p := overridden(gateway, route, rule)
		p.Rules[0].Rule = fmt.Sprint("rule", r.IntN(3))
		b.Add(p)
	}
	return b.Graph(Options{Nodes: 1000})
}

// No box, note or result covers another one, and all are within the picture.
func TestLayoutHasNoOverlap(t *testing.T) {
	for seed := range uint64(50) {
		l := random(rand.New(rand.NewPCG(seed, 0))).layout()
		rects := make([]*rect, 0, len(l.rects))
		for id, r := range l.rects {
			require.Positive(t, r.y, id)
			require.LessOrEqual(t, r.x+r.w, l.width)
			require.LessOrEqual(t, r.y+r.h, l.height)
			for _, o := range rects {
				apart := r.x+r.w <= o.x || o.x+o.w <= r.x || r.y+r.h <= o.y || o.y+o.h <= r.y
				require.True(t, apart, "seed %d: %+v covers %+v", seed, r, o)
			}
			rects = append(rects, r)
		}
	}
}

// The order in which paths are added does not matter.
func TestOutputIsDeterministic(t *testing.T) {
	paths := []Path{overridden("edge", "a", "x"), overridden("edge", "b", "x"), overridden("other", "a", "x")}
	want := build(paths...)
	got := build(overridden("other", "a", "x"), overridden("edge", "b", "x"), overridden("edge", "a", "x"))
	assert.Equal(t, want.Mermaid(), got.Mermaid())
	assert.Equal(t, want.DOT(), got.DOT())
	assert.Equal(t, want.SVG(nil), got.SVG(nil))
}

func BenchmarkGraph(b *testing.B) {
	for _, routes := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			paths := make([]Path, 0, 2*routes)
			for i := range routes {
				for _, rule := range []string{"x", "y"} {
					paths = append(paths, overridden(fmt.Sprint("g", i%5), fmt.Sprint("r", i), rule))
				}
			}
			for b.Loop() {
				var builder Builder
				for _, p := range paths {
					builder.Add(p)
				}
				b.ReportMetric(float64(len(builder.Graph(Options{}).SVG(nil))), "bytes")
			}
		})
	}
}
