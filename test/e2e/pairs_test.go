//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
)

const (
	// pairsVariable is the number of pairs of writes: docs/guardrails.md reports
	// results of 1000.
	pairsVariable = "OVERRULE_PAIRS"
	fewPairs      = 40
	// together is the number of pairs that are written at the same time.
	together = 12
)

// number returns the value of an environment variable.
func number(t *testing.T, variable string, byDefault int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// pairs are pairs of writes whose objects were prepared.
type pairs struct {
	testNamespaces
	sorts []*pairSort // of each pair
}

// preparePairs creates the objects of n pairs, about as many of each sort, and
// the constraints, before any server runs.
func (c *cluster) preparePairs(t *testing.T, name string, n int, sorts ...pairSort) pairs {
	t.Helper()
	p := pairs{testNamespaces: c.prepare(t, name+"-"+rand.String(4))} // with -count, there are others
	used := make([]int, len(sorts))
	for i := 0; len(p.sorts) < n; i++ {
		s := i % len(sorts)
		if most := sorts[s].most; most > 0 && used[s] == most {
			continue
		}
		used[s]++
		p.sorts = append(p.sorts, &sorts[s])
	}
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.InstallCRDs(filepath.Join(root, "deploy", "crds")))
	t.Cleanup(func() {
		c.removeWebhooks(t) // its servers have stopped
		succeed(t, c.Kubectl("delete", "-l", "test=pairs", "clusterpolicyconstraint,policyprofile,crd"))
	})
	p.create(t)
	return p
}

// create creates the prepared objects.
func (p pairs) create(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(p.c.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	admin, err := client.New(config, client.Options{})
	require.NoError(t, err)
	require.NoError(t, createAll(t.Context(), admin, p.expand(pairConstraint)))
	errs := make([]error, len(p.sorts))
	concurrently(len(p.sorts), func(i int) {
		errs[i] = createAll(t.Context(), admin, p.pairText(p.sorts[i].prepared, i))
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// createAll creates the objects of a manifest. It waits until an object's kind is
// served.
func createAll(ctx context.Context, c client.Client, manifests string) error {
	for manifest := range strings.SplitSeq(manifests, "---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			return err
		}
		err := c.Create(ctx, object)
		for apierrors.IsNotFound(err) || clientMisses(err) {
			time.Sleep(50 * time.Millisecond)
			err = c.Create(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// clientMisses reports whether discovery does not list a kind yet.
func clientMisses(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no matches for kind")
}

// pairCounts counts the results of the pairs of one sort.
type pairCounts struct {
	both, one, none int
	// inOrder counts those of one-way sorts that both passed in the allowed order.
	inOrder int
}

func (l *pairCounts) add(o pairCounts) {
	l.both, l.one, l.none, l.inOrder = l.both+o.both, l.one+o.one, l.none+o.none, l.inOrder+o.inOrder
}

func (l pairCounts) String() string {
	text := fmt.Sprintf("%d pairs: both passed %d, one passed %d, none passed %d", l.both+l.one+l.none+l.inOrder, l.both, l.one, l.none)
	if l.inOrder > 0 {
		text += fmt.Sprintf(", both passed in the allowed order %d", l.inOrder)
	}
	return text
}

// pairResults are the results of all pairs.
type pairResults struct {
	mu       sync.Mutex
	sorts    map[string]*pairCounts
	slips    []string
	failures []string // neither stored nor denied for the reason of the sort
	took     time.Duration
}

func (r *pairResults) total() pairCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum pairCounts
	for _, l := range r.sorts {
		sum.add(*l)
	}
	return sum
}

// log reports the results, with the writes of each pair per second.
func (r *pairResults) log(t *testing.T, what string) {
	t.Helper()
	sum := r.total()
	n := sum.both + sum.one + sum.none + sum.inOrder
	t.Logf("%s: %s, in %.1f s (%.0f writes a second)", what, sum, r.took.Seconds(), 2*float64(n)/r.took.Seconds())
	for _, s := range pairSorts() {
		if l := r.sorts[s.name]; l != nil {
			t.Logf("  %s: %s", s.name, l)
		}
	}
	for _, f := range r.failures[:min(len(r.failures), 5)] {
		t.Logf("  failure: %s", f)
	}
}

// writePairs writes all pairs, some at the same time. The writes of pair i are
// sent with two adjacent clients.
func (p pairs) writePairs(clients []*pairClient) *pairResults {
	out := &pairResults{sorts: map[string]*pairCounts{}}
	began := time.Now()
	p.each(func(i int) {
		first, second := clients[i%len(clients)], clients[(i+1)%len(clients)]
		out.add(p.writePair(i, first, second))
	})
	out.took = time.Since(began)
	return out
}

// each calls a function for each pair, some at the same time.
func (p pairs) each(call func(i int)) {
	var group sync.WaitGroup
	places := make(chan struct{}, together)
	for i := range p.sorts {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			call(i)
		})
	}
	group.Wait()
}

// pairResult is the result of one pair.
type pairResult struct {
	sort     *pairSort
	n        int
	versions [2]string
	errs     [2]error
}

func (p pairs) writePair(i int, first, second client.Client) pairResult {
	s := p.sorts[i]
	r := pairResult{sort: s, n: i}
	r.versions, r.errs = writeTogether(
		halfPair{p.pairWrite(s.first, i), first}, halfPair{p.pairWrite(s.second, i), second})
	return r
}

// halfPair is a write, and the client that sends it.
type halfPair struct {
	write  pairWrite
	client client.Client
}

// writeTogether sends two writes at exactly the same time.
func writeTogether(halves ...halfPair) (versions [2]string, errs [2]error) {
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i, h := range halves {
		group.Go(func() {
			<-begin
			// A dry run leaves no state behind.
			_, _ = h.write.send(context.Background(), h.client, true)
			versions[i], errs[i] = h.write.send(context.Background(), h.client, false)
		})
	}
	close(begin)
	group.Wait()
	return versions, errs
}

func (r *pairResults) add(p pairResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.sorts[p.sort.name]
	if l == nil {
		l = &pairCounts{}
		r.sorts[p.sort.name] = l
	}
	passed := 0
	for _, err := range p.errs {
		switch {
		case err == nil:
			passed++
		case !deniedAs(err, p.sort):
			r.failures = append(r.failures, fmt.Sprintf("%s %d: %v", p.sort.name, p.n, err))
		}
	}
	switch {
	case passed == 2 && p.sort.oneWay && older(p.versions[1], p.versions[0]):
		l.inOrder++
	case passed == 2:
		l.both++
		r.slips = append(r.slips, fmt.Sprintf("%s %d at %s and %s", p.sort.name, p.n, p.versions[0], p.versions[1]))
	case passed == 1:
		l.one++
	default:
		l.none++
	}
}

func deniedAs(err error, s *pairSort) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), string(s.code)+": ")
}

// older compares resource versions.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// pairClient writes as one user, and counts the responses with code 429.
type pairClient struct {
	client.Client

	user    string
	tooMany atomic.Int64
}

// newPairClient returns a client of an admin with a name of its own. It retries
// after a 429, as kubectl does, or reports it.
func (c *cluster) newPairClient(t *testing.T, user string, retry bool) *pairClient {
	t.Helper()
	out := &pairClient{user: user}
	config := rest.CopyConfig(c.MustAddUser(t, user, []string{"system:masters"}).Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countTooMany{next, &out.tooMany, retry} })
	var err error
	out.Client, err = client.New(config, client.Options{})
	require.NoError(t, err)
	return out
}

// countTooMany counts responses with code 429. Without retry it removes the
// header that makes client-go retry a request.
type countTooMany struct {
	next  http.RoundTripper
	count *atomic.Int64
	retry bool
}

func (r *countTooMany) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		r.count.Add(1)
		if !r.retry {
			response.Header.Del("Retry-After")
		}
	}
	return response, err
}

// objectOf returns how a review names the object of a write: kind,
// namespace and name.
func (w pairWrite) objectOf(t *testing.T) string {
	t.Helper()
	var object unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(w.manifest), &object.Object))
	return strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
}
