//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/replay"
	"overrule.dev/overrule/test/server"
)

// startReplicas starts servers behind a balancer, and waits until the API server
// calls them.
func (c *cluster) startReplicas(t *testing.T, b *balancer, n int, args ...string) []*server.Server {
	t.Helper()
	servers := []*server.Server{c.boot(t, b, args...)}
	b.setBackends(servers...)
	c.awaitCalled(t)
	for range n - 1 {
		servers = append(servers, c.boot(t, b, args...))
	}
	b.setBackends(servers...)
	t.Cleanup(func() { b.setBackends() })
	return servers
}

// clientsOf returns a client for each server, whose writes go there.
func (c *cluster) clientsOf(t *testing.T, b *balancer, servers []*server.Server, retry bool) []*pairClient {
	t.Helper()
	var out []*pairClient
	for i, s := range servers {
		client := c.newPairClient(t, fmt.Sprintf("replica-%d", i), retry)
		b.route(client.user, s)
		out = append(out, client)
	}
	return out
}

// TestPairsConflict tests the sorts: each write is valid alone, and denied after
// the other.
func TestPairsConflict(t *testing.T) {
	c := shared(t)
	sorts := pairSorts()
	p := c.preparePairs(t, "pairs-conflict", 2*len(sorts), sorts...)
	b := newBalancer(t, c)
	client := c.clientsOf(t, b, c.startReplicas(t, b, 1), true)[0]
	for i, s := range p.sorts {
		writes := []pairWrite{p.pairWrite(s.first, i), p.pairWrite(s.second, i)}
		name := s.name
		backward := i >= len(sorts)
		if backward {
			writes[0], writes[1] = writes[1], writes[0]
			name += ", the second write first"
		}
		t.Run(name, func(t *testing.T) {
			_, err := writes[0].send(t.Context(), client, false)
			require.NoError(t, err)
			_, err = writes[1].send(t.Context(), client, false)
			if backward && s.oneWay {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.True(t, deniedAs(err, s), "%v", err)
		})
	}
}

func TestConflictingWrites(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("replicas=%d", n), func(t *testing.T) {
			if n == 3 {
				env.Long(t)
			}
			c := shared(t)
			p := c.preparePairs(t, fmt.Sprintf("pairs-%d", n), number(t, pairsVariable, fewPairs), pairSorts()...)
			b := newBalancer(t, c)
			servers := c.startReplicas(t, b, n)
			recorder := replay.Record(t, c.Env)
			got := p.writePairs(c.clientsOf(t, b, servers, true))
			got.log(t, fmt.Sprintf("%d replicas", n))
			recorder.RequireSound(t)
			assert.Empty(t, got.failures)
			assert.Empty(t, got.slips, "pairs of which both passed")
			assert.Zero(t, got.total().none)
			p.requireSpread(t, b, servers)
			c.awaitViolations(t, got, servers...)
		})
	}
}

// requireSpread requires that the writes of each pair were sent to different
// servers, if there are several: of pair i to server i and to the one after it.
func (p pairs) requireSpread(t *testing.T, b *balancer, servers []*server.Server) {
	t.Helper()
	want := make([][]string, len(servers))
	for i, s := range p.sorts {
		first, second := i%len(servers), (i+1)%len(servers)
		want[first] = append(want[first], p.pairWrite(s.first, i).objectOf(t))
		want[second] = append(want[second], p.pairWrite(s.second, i).objectOf(t))
	}
	for i, s := range servers {
		assert.ElementsMatch(t, want[i], slices.Collect(maps.Keys(b.objects(s))), "writes sent to server %d", i)
	}
}

// narrow returns the sorts whose writes affect a few paths. A constraint or a
// profile is evaluated on all paths: again, if others were written meanwhile.
func narrow(sorts []pairSort) []pairSort {
	return slices.DeleteFunc(sorts, func(s pairSort) bool { return s.wide })
}

// Writes of different paths are all admitted at once, and not only after a retry.
func TestOtherWritesPassAtFirstTry(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("replicas=%d", n), func(t *testing.T) {
			if n == 3 {
				env.Long(t)
			}
			c := shared(t)
			wanted := number(t, pairsVariable, fewPairs)
			p := c.preparePairs(t, fmt.Sprintf("others-%d", n), 2*wanted, narrow(pairSorts())...)
			b := newBalancer(t, c)
			clients := c.clientsOf(t, b, c.startReplicas(t, b, n), false)
			failures, took := p.writeOthers(clients)
			t.Logf("%d replicas: %d pairs that do not conflict, in %.1f s (%.0f writes a second)", n, wanted, took.Seconds(), float64(2*wanted)/took.Seconds())
			assert.Empty(t, failures)
			for _, client := range clients {
				assert.Zero(t, client.tooMany.Load(), "responses with code 429 to %s", client.user)
			}
		})
	}
}

// writeOthers writes the first write of each even pair together with the second
// one of the next pair, and returns the errors.
func (p pairs) writeOthers(clients []*pairClient) (failures []string, took time.Duration) {
	var mu sync.Mutex
	began := time.Now()
	p.each(func(i int) {
		if i%2 > 0 {
			return
		}
		_, errs := writeTogether(
			halfPair{p.pairWrite(p.sorts[i].first, i), clients[i/2%len(clients)]},
			halfPair{p.pairWrite(p.sorts[i+1].second, i+1), clients[(i/2+1)%len(clients)]})
		mu.Lock()
		defer mu.Unlock()
		for half, err := range errs {
			if err != nil {
				failures = append(failures, fmt.Sprintf("%s %d: %v", p.sorts[i+half].name, i+half, err))
			}
		}
	})
	return failures, time.Since(began)
}

// Without coordination, pairs can both pass. The audit of each replica reports
// them.
func TestUncoordinatedWritesAreReported(t *testing.T) {
	env.Long(t)
	c := shared(t)
	p := c.preparePairs(t, "pairs-none", number(t, pairsVariable, fewPairs), pairSorts()...)
	b := newBalancer(t, c)
	servers := c.startReplicas(t, b, 2, "--coordination=none")
	recorder := replay.Record(t, c.Env)
	got := p.writePairs(c.clientsOf(t, b, servers, true))
	got.log(t, "2 replicas without coordination")
	report, err := recorder.Check(t.Context())
	require.NoError(t, err)
	t.Log(report)
	assert.Len(t, report.Findings, got.total().both, "the replay finds each pair of which both passed")
	assert.Empty(t, got.failures)
	assert.NotEmpty(t, got.slips, "otherwise this test sees nothing")
	c.awaitViolations(t, got, servers...)
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
	return metric(t, s, "overrule_violations", `reason="RequirementUnmet"`)
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

// awaitViolations waits until the audit of each server reports the pairs that both
// passed.
func (c *cluster) awaitViolations(t *testing.T, got *pairResults, servers ...*server.Server) {
	t.Helper()
	sum := got.total()
	for _, s := range servers {
		soon(t, func() bool { return violations(t, s) == float64(sum.both+sum.inOrder) }, "the audit does not report allowed violations")
	}
}

// requireViolations waits until the audit of a server reports as many violations,
// and "kubectl overrule violations" as well.
func (c *cluster) requireViolations(t *testing.T, want int, s *server.Server) {
	t.Helper()
	soon(t, func() bool { return violations(t, s) == float64(want) }, "the audit does not report allowed violations")
	assert.Equal(t, want, c.reportedViolations(t))
}

func TestAuditReportsAllowedViolations(t *testing.T) {
	c := shared(t)
	g := c.preparePairs(t, "pairs-let", 1, pairSorts()[0])
	s := c.start(t, "--enforcement=warn")
	soon(t, func() bool { return metric(t, s, "overrule_audit_runs_total", `scope="all"`, `result="done"`) > 0 }, "there was no audit")
	c.requireViolations(t, 0, s)
	succeed(t, c.Apply(g.pairText(pairAbove, 0)))
	succeed(t, c.Apply(g.pairText(pairBelow, 0)))
	c.requireViolations(t, 1, s)
	soon(t, func() bool {
		got := g.kubectl("describe", "httproute/pair-0")
		return got.Code == 0 && strings.Contains(got.Stdout, "RequirementUnmet") && strings.Contains(got.Stdout, "both limits are set")
	}, "no Event reports it")
	assert.Contains(t, s.Log(), `"msg":"violation","reason":"RequirementUnmet"`)

	succeed(t, g.kubectl("delete", "ratelimitpolicy/pair-0"))
	c.requireViolations(t, 0, s)
	assert.Contains(t, s.Log(), `"msg":"violation resolved","reason":"RequirementUnmet"`)
}
