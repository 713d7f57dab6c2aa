//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/replay"
	"overrule.dev/overrule/test/server"
)

const (
	// pairsVariable is the number of pairs of writes: docs/guardrails.md reports
	// results of 300.
	pairsVariable = "OVERRULE_PAIRS"
	fewPairs      = 60
	// together is the number of pairs that are written at the same time.
	together = 12
)

func pairs(t *testing.T) int {
	t.Helper()
	text := os.Getenv(pairsVariable)
	if text == "" {
		return fewPairs
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, pairsVariable)
	return n
}

// pairConstraint forbids a combination of two limits on a path: each of a pair of
// policies sets one and is valid without the other.
const pairConstraint = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: not-both}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{group: "", kind: Namespace, name: INFRA}]
  validations:
  - expression: "!(has(effective.limits) && has(effective.limits.gate) && has(effective.limits.route))"
    message: both limits are set
`

// Each pair has a gateway with a route, and a policy on each.
const (
	pairGround = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: pair-N}
spec:
  gatewayClassName: shop
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: pair-N}
spec:
  parentRefs: [{namespace: INFRA, name: pair-N}]
  rules: [{name: all}]
---
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
)

func (g testNamespaces) pair(manifest string, n int) string {
	return strings.ReplaceAll(g.expand(manifest), "pair-N", fmt.Sprintf("pair-%d", n))
}

// preparePairs creates the objects of n pairs, and the constraint, before any
// server runs.
func (c *cluster) preparePairs(t *testing.T, name string, n int) testNamespaces {
	t.Helper()
	g := c.prepare(t, name)
	var all strings.Builder
	for i := range n {
		all.WriteString(g.pair(pairGround, i))
	}
	succeed(t, c.Apply(all.String()))
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.InstallCRDs(filepath.Join(root, "deploy", "crds")))
	succeed(t, g.apply(pairConstraint))
	t.Cleanup(func() {
		c.removeWebhooks(t) // its servers have stopped
		succeed(t, c.Kubectl("delete", "--ignore-not-found", "clusterpolicyconstraint/not-both"))
	})
	return g
}

// pairCounts counts the results of pairs of writes.
type pairCounts struct {
	both, one, none int
	denied          int // with the constraint's reason code
	failures        []string
}

func (l pairCounts) String() string {
	return fmt.Sprintf("%d pairs: both passed %d, one passed %d, none passed %d", l.both+l.one+l.none, l.both, l.one, l.none)
}

// writePairs writes all pairs, some at the same time, and the two writes of a
// pair at exactly the same time. The client retries a 429, as kubectl does.
func writePairs(t *testing.T, g testNamespaces, n int) pairCounts {
	t.Helper()
	config := rest.CopyConfig(g.c.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"})
	var (
		out   pairCounts
		mu    sync.Mutex
		group sync.WaitGroup
	)
	places := make(chan struct{}, together)
	for i := range n {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			above, below := writePair(policies, g.pair(pairAbove, i), g.pair(pairBelow, i))
			mu.Lock()
			defer mu.Unlock()
			out.add(above, below)
		})
	}
	group.Wait()
	return out
}

func writePair(policies dynamic.NamespaceableResourceInterface, manifests ...string) (error, error) {
	errs := make([]error, len(manifests))
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i, m := range manifests {
		group.Go(func() {
			var object unstructured.Unstructured
			if errs[i] = yaml.Unmarshal([]byte(m), &object.Object); errs[i] != nil {
				return
			}
			<-begin
			// A dry run leaves no state behind.
			_, _ = policies.Namespace(object.GetNamespace()).Create(context.Background(), &object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			_, errs[i] = policies.Namespace(object.GetNamespace()).Create(context.Background(), &object, metav1.CreateOptions{})
		})
	}
	close(begin)
	group.Wait()
	return errs[0], errs[1]
}

func (l *pairCounts) add(above, below error) {
	passed := 0
	for _, err := range []error{above, below} {
		switch {
		case err == nil:
			passed++
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "RequirementUnmet: "):
			l.denied++
		default:
			l.failures = append(l.failures, err.Error())
		}
	}
	switch passed {
	case 2:
		l.both++
	case 1:
		l.one++
	default:
		l.none++
	}
}

// metric returns a gauge or counter of a server, summed over all labels except
// the given ones.
func metric(t *testing.T, s *server.Server, name string, labels ...string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Metrics+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	sum := 0.0
	line := regexp.MustCompile(`(?m)^` + name + `(?:\{(.*)\})? (\S+)$`)
	for _, m := range line.FindAllStringSubmatch(string(body), -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		for _, l := range labels {
			if !strings.Contains(m[1], l) {
				value = 0
			}
		}
		sum += value
	}
	return sum
}

func violations(t *testing.T, s *server.Server) float64 {
	t.Helper()
	return metric(t, s, "overrule_violations", `reason="RequirementUnmet"`, `policy_kind="RateLimitPolicy.kuadrant.io"`)
}

// reportedViolations returns the number of pairs that "kubectl overrule
// violations" lists.
func (c *cluster) reportedViolations(t *testing.T) int {
	t.Helper()
	got := c.Overrule("violations", "clusterpolicyconstraint/not-both", "-A", "-o", "json")
	var list struct{ Items []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list), got.Stdout+got.Stderr)
	assert.Equal(t, len(list.Items) > 0, got.Code == 1, got.Stderr)
	return len(list.Items)
}

func (c *cluster) awaitViolations(t *testing.T, want int, servers ...*server.Server) {
	t.Helper()
	for _, s := range servers {
		soon(t, func() bool { return violations(t, s) == float64(want) }, "the audit does not report allowed violations")
	}
	assert.Equal(t, want, c.reportedViolations(t))
}

func TestConflictingWritesOneServer(t *testing.T) {
	c := shared(t)
	n := pairs(t)
	g := c.preparePairs(t, "pairs-one", n)
	s := c.start(t)
	recorder := replay.Record(t, c.Env)
	began := time.Now()
	got := writePairs(t, g, n)
	t.Logf("one server, %s, in %s", got, time.Since(began).Round(time.Millisecond))
	assert.Empty(t, got.failures)
	assert.Zero(t, got.both)
	assert.Equal(t, n, got.one)
	recorder.RequireSound(t)
	c.awaitViolations(t, 0, s)
}

func TestConflictingWritesTwoServersAreReported(t *testing.T) {
	env.Long(t)
	c := shared(t)
	n := pairs(t)
	g := c.preparePairs(t, "pairs-two", n)
	r := newServiceProxy(t)
	first := c.boot(t, r)
	r.setBackends(first.Webhook)
	c.awaitCalled(t)
	second := c.boot(t, r)
	r.setBackends(first.Webhook, second.Webhook)
	recorder := replay.Record(t, c.Env)
	began := time.Now()
	got := writePairs(t, g, n)
	t.Logf("two servers, %s, in %s; they evaluated %.0f and %.0f writes", got, time.Since(began).Round(time.Millisecond),
		evaluatedWrites(t, first), evaluatedWrites(t, second))
	assert.Empty(t, got.failures)
	assert.Zero(t, got.none)
	report, err := recorder.Check(t.Context())
	require.NoError(t, err)
	t.Log(report)
	assert.Len(t, report.Findings, got.both, "the replay finds each pair of which both passed")
	for _, f := range report.Findings {
		assert.Equal(t, []api.ReasonCode{api.ReasonRequirementUnmet}, f.Codes, f)
	}
	c.awaitViolations(t, got.both, first, second)
}

func evaluatedWrites(t *testing.T, s *server.Server) float64 {
	t.Helper()
	return metric(t, s, "overrule_decisions_total", `webhook="validate"`, `kind="RateLimitPolicy.kuadrant.io"`)
}

func TestAuditReportsAllowedViolations(t *testing.T) {
	c := shared(t)
	g := c.preparePairs(t, "pairs-let", 1)
	s := c.start(t, "--enforcement=warn")
	soon(t, func() bool { return metric(t, s, "overrule_audit_runs_total", `scope="all"`, `result="done"`) > 0 }, "there was no audit")
	c.awaitViolations(t, 0, s)
	succeed(t, c.Apply(g.pair(pairAbove, 0)))
	succeed(t, c.Apply(g.pair(pairBelow, 0)))
	c.awaitViolations(t, 1, s)
	soon(t, func() bool {
		got := g.kubectl("describe", "httproute/pair-0")
		return got.Code == 0 && strings.Contains(got.Stdout, "RequirementUnmet") && strings.Contains(got.Stdout, "both limits are set")
	}, "no Event reports it")
	assert.Contains(t, s.Log(), `"msg":"violation","reason":"RequirementUnmet"`)

	succeed(t, g.kubectl("delete", "ratelimitpolicy/pair-0"))
	c.awaitViolations(t, 0, s)
	assert.Contains(t, s.Log(), `"msg":"violation resolved","reason":"RequirementUnmet"`)
}
