//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/shop"
)

// together is the number of pairs that are written at the same time.
const together = 12

// tenant has the namespaces of gateways and of applications.
type tenant struct{ infra, app string }

func newTenant(name string) tenant {
	name += "-" + rand.String(4)
	return tenant{name + "-infra", name + "-app"}
}

func (g tenant) expand(manifest string, more ...string) string {
	return shop.In(g.infra, g.app, manifest, more...)
}

// pairs are pairs of writes whose objects were prepared.
type pairs struct {
	tenant

	t       *testing.T
	admin   client.Client
	tooMany atomic.Int64 // responses with code 429
	from    int
	sorts   []*pairSort // of each pair
}

// pairNumbers are those of all tests.
var pairNumbers atomic.Int64

// preparePairs creates the objects of n pairs, about as many of each sort, and their
// constraint, before any server runs.
func preparePairs(t *testing.T, n int, sorts ...pairSort) *pairs {
	t.Helper()
	p := &pairs{tenant: newTenant("pairs"), t: t, from: int(pairNumbers.Add(int64(n))) - n}
	p.admin = newClient(t, startPlane(t).User, &p.tooMany)
	for i := range n {
		p.sorts = append(p.sorts, &sorts[i%len(sorts)])
	}
	createAll(t, p.admin, p.expand(shop.Namespaces+"---"+shop.Gateway+"---"+pairConstraint))
	var group sync.WaitGroup
	for part := range together {
		group.Go(func() {
			for i := part; i < n; i += together {
				createAll(t, p.admin, p.text(p.sorts[i].prepared, p.from+i))
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	return p
}

// createAll creates the objects of a manifest. It waits until an object's kind is
// served.
func createAll(t *testing.T, c client.Client, manifests string) {
	t.Helper()
	for manifest := range strings.SplitSeq(manifests, "---") {
		object := decode(t, manifest)
		env.Soon(t, func() bool {
			err := c.Create(t.Context(), object.DeepCopy())
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || isInterrupted(err) {
				return false
			}
			if !apierrors.IsAlreadyExists(err) {
				assert.NoError(t, err, object.GetName())
			}
			return true
		}, "%s is not created", object.GetName())
	}
}

func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	assert.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	return object
}

// newClient returns a client without rate limit that retries after a 429, as kubectl
// does, and counts these.
func newClient(t *testing.T, u *env.User, tooMany *atomic.Int64) client.Client {
	t.Helper()
	config := rest.CopyConfig(u.Config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countTooMany{next, tooMany} })
	out, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return out
}

// countTooMany counts responses with code 429.
type countTooMany struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c countTooMany) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		c.count.Add(1)
	}
	return response, err
}

// pairResult is the result of one pair.
type pairResult struct {
	versions [2]string
	errs     [2]error
}

// writePair writes both halves of a pair: at the same time, or one after the other where only
// the second one is denied. At the same time both could pass then, in whichever order they are
// stored: the second one may have been evaluated before the first.
func (p *pairs) writePair(i int) pairResult {
	s := p.sorts[i]
	writes := []pairWrite{p.write(s.first, p.from+i), p.write(s.second, p.from+i)}
	if !s.oneWay {
		return p.together(writes...)
	}
	first, second := p.together(writes[0]), p.together(writes[1])
	return pairResult{[2]string{first.versions[0], second.versions[0]}, [2]error{first.errs[0], second.errs[0]}}
}

// together sends two writes at the same time, each after a dry run, which leaves no
// state behind.
func (p *pairs) together(writes ...pairWrite) (out pairResult) {
	begin := make(chan struct{})
	var group sync.WaitGroup
	for half, w := range writes {
		group.Go(func() {
			<-begin
			_, _ = w.send(context.Background(), p.admin, true)
			out.versions[half], out.errs[half] = w.send(context.Background(), p.admin, false)
		})
	}
	close(begin)
	group.Wait()
	return out
}

// each calls a function for each pair, some at the same time.
func (p *pairs) each(call func(i int)) {
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

// slips are pairs of which both writes passed.
type slips struct {
	mu    sync.Mutex
	pairs []string
}

// writeAll writes all pairs. One write of each passes, and the other one is denied for
// the reason of its sort; it returns those of which both passed.
func (p *pairs) writeAll() []string {
	p.t.Helper()
	var out slips
	p.each(func(i int) {
		s, r := p.sorts[i], p.writePair(i)
		for _, err := range r.errs {
			assert.True(p.t, err == nil || deniedAs(err, s), "%s %d: %v", s.name, p.from+i, err)
		}
		switch {
		case r.errs[0] != nil && r.errs[1] != nil:
			assert.Fail(p.t, "none passed", "%s %d: %v", s.name, p.from+i, r.errs)
		case r.errs[0] == nil && r.errs[1] == nil:
			out.mu.Lock()
			out.pairs = append(out.pairs, fmt.Sprintf("%s %d at %s and %s", s.name, p.from+i, r.versions[0], r.versions[1]))
			out.mu.Unlock()
		}
	})
	return out.pairs
}

// writeOthers writes the first write of each even pair together with the second one of
// the next pair: they do not conflict, and pass.
func (p *pairs) writeOthers() {
	p.each(func(i int) {
		if i%2 > 0 {
			return
		}
		got := p.together(p.write(p.sorts[i].first, p.from+i), p.write(p.sorts[i+1].second, p.from+i+1))
		assert.NoError(p.t, got.errs[0], "%s %d", p.sorts[i].name, p.from+i)
		assert.NoError(p.t, got.errs[1], "%s %d", p.sorts[i+1].name, p.from+i+1)
	})
}

// requireNotBoth requires that not both writes of any pair of a range were stored,
// whatever their client knows.
func (p *pairs) requireNotBoth(from, to int) {
	p.t.Helper()
	for i := from; i < to; i++ {
		s, both := p.sorts[i], true
		for _, w := range []pairWrite{s.first, s.second} {
			stored, err := p.write(w, p.from+i).stored(p.t.Context(), p.admin)
			require.NoError(p.t, err)
			both = both && stored
		}
		assert.False(p.t, both, "both writes of %s %d are stored", s.name, p.from+i)
	}
}

func deniedAs(err error, s *pairSort) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), string(s.code)+": ")
}

// narrow returns the sorts whose writes affect a few paths. A constraint is evaluated on
// all paths: again, if others were written meanwhile.
func narrow(sorts []pairSort) []pairSort {
	return slices.DeleteFunc(sorts, func(s pairSort) bool { return s.wide })
}

// twoWay returns the sorts with a denial whichever write is stored first.
func twoWay(sorts []pairSort) []pairSort {
	return slices.DeleteFunc(sorts, func(s pairSort) bool { return s.oneWay })
}
