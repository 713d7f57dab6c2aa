package cache

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// catchUpFixture is a Watcher whose reflectors the test feeds, and whose lists of
// metadata it answers.
type catchUpFixture struct {
	*Watcher
	t *testing.T

	mu    sync.Mutex
	lists map[string]func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	// requests are the resources that were listed, with the continue token.
	requests []string
}

type fakeMetadata struct {
	metadata.Getter
	fixture  *catchUpFixture
	resource string
}

// Resource implements metadata.Interface.
func (f *catchUpFixture) Resource(r schema.GroupVersionResource) metadata.Getter {
	return fakeMetadata{fixture: f, resource: r.Resource}
}

// List returns an empty list at version 10 unless the test has set another one.
func (m fakeMetadata) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	f := m.fixture
	f.mu.Lock()
	defer f.mu.Unlock()
	request := m.resource
	if o.Continue != "" {
		request += " " + o.Continue
	}
	f.requests = append(f.requests, request)
	if list := f.lists[m.resource]; list != nil {
		return list(o)
	}
	return metadataOf("10"), nil
}

func (f *catchUpFixture) answer(resource string, list func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[resource] = list
}

func (f *catchUpFixture) fail(resource string, err error) {
	f.answer(resource, func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) { return nil, err })
}

func (f *catchUpFixture) hasList(resource, version string, items ...metav1.Object) {
	f.answer(resource, func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		return metadataOf(version, items...), nil
	})
}

func (f *catchUpFixture) requested() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	slices.Sort(out)
	return out
}

func metadataOf(version string, items ...metav1.Object) *metav1.PartialObjectMetadataList {
	out := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, o := range items {
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		}})
	}
	return out
}

func crdAt(c crd, version int) metav1.Object {
	out := c.obj()
	out.ResourceVersion = strconv.Itoa(version)
	return out
}

func policyAt(name string, version int) *unstructured.Unstructured {
	out := policy(colorCRD.kind, "app", name)
	out.SetResourceVersion(strconv.Itoa(version))
	out.SetUID(types.UID("uid-of-" + name))
	return out
}

// newCatchUpFixture has HTTPRoutes and ColorPolicies, and lists of everything at version
// 10.
func newCatchUpFixture(t *testing.T) *catchUpFixture {
	f := &catchUpFixture{t: t, lists: make(map[string]func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error))}
	var err error
	f.Watcher, err = New(&rest.Config{Host: "http://127.0.0.1:1"}, snapshot.New(Sources...), Options{})
	require.NoError(t, err)
	f.clients.metadata = f
	f.registry.start = func(r *reflector) { r.cancel = func() {} }
	f.hasList(sourceDefinitions, "10", crdAt(httpCRD, 1), crdAt(colorCRD, 2))
	f.feed(f.definitions, "10", crdAt(httpCRD, 1), crdAt(colorCRD, 2))
	f.feed(f.core[0], "10")
	f.feed(f.core[1], "10")
	f.feed(f.of(httpCRD), "10")
	f.feed(f.of(colorCRD), "10")
	for _, r := range f.reflectors() {
		r.health.watchOpened(false)
	}
	return f
}

func (f *catchUpFixture) of(c crd) *reflector { return f.registry.watched[c.obj().Name].reflector }

// feed gives a reflector a full list.
func (f *catchUpFixture) feed(r *reflector, version string, objects ...metav1.Object) {
	f.t.Helper()
	var all []any
	for _, o := range objects {
		all = append(all, o)
	}
	require.NoError(f.t, r.store.Replace(all, version))
}

func (f *catchUpFixture) update(r *reflector, o metav1.Object) {
	f.t.Helper()
	require.NoError(f.t, r.store.Update(o))
}

// result is that of CatchUp.
type result struct {
	observed []snapshot.Observation
	err      error
}

func (f *catchUpFixture) catchUp(ctx context.Context, pending ...api.Ref) <-chan result {
	out := make(chan result, 1)
	go func() {
		observed, err := f.CatchUp(ctx, pending)
		out <- result{observed, err}
	}()
	synctest.Wait()
	return out
}

func assertWaits(t *testing.T, end <-chan result, msg string) {
	t.Helper()
	synctest.Wait()
	assert.Empty(t, end, msg)
}

// assertReturns asserts that CatchUp has returned.
func assertReturns(t *testing.T, end <-chan result, want ...snapshot.Observation) {
	t.Helper()
	synctest.Wait()
	require.Len(t, end, 1, "it still waits")
	got := <-end
	require.NoError(t, got.err)
	assert.Equal(t, want, got.observed)
}

func runWithFixture(t *testing.T, test func(*testing.T, *catchUpFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newCatchUpFixture(t)) })
}

var pRef = api.Ref{Group: colorRef.Group, Kind: colorRef.Kind, Namespace: "app", Name: "p"}

func TestCatchUpWaitsForEachSource(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		end := f.catchUp(t.Context())
		assertReturns(t, end)
		assert.Equal(t, []string{"colorpolicies", "customresourcedefinitions", "httproutes", "namespaces", "services"}, f.requested())

		f.hasList("httproutes", "20", routeAt("a", 12))
		f.hasList("colorpolicies", "20", policyAt("p", 13))
		end = f.catchUp(t.Context())
		assertWaits(t, end, "both are late")
		f.update(f.of(httpCRD), routeAt("a", 12))
		assertWaits(t, end, "one is late")
		f.update(f.of(colorCRD), policyAt("p", 13))
		assertReturns(t, end)
	})
}

// Definitions and profiles determine what is read, so they are first.
func TestCatchUpListsDefinitionsFirst(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(profileCRD, 12), crdAt(paintCRD, 13))
		end := f.catchUp(t.Context())
		assert.Equal(t, []string{sourceDefinitions}, f.requested())
		f.update(f.definitions, crdAt(profileCRD, 12))
		assertWaits(t, end, "a definition is missing")
		assert.Empty(t, f.requested())

		profile := paint(t, "paint", 1, "direct")
		profile.SetResourceVersion("14")
		f.hasList(sourceProfiles, "21", profile)
		f.update(f.definitions, crdAt(paintCRD, 13))
		assertWaits(t, end, "the profile is missing")
		assert.Equal(t, []string{sourceProfiles}, f.requested())
		f.feed(f.of(profileCRD), "22", profile)
		assertWaits(t, end, "a kind has not been listed")
		assert.Equal(t, []string{"colorpolicies", "httproutes", "namespaces", "paints", "services"}, f.requested())
		f.feed(f.of(paintCRD), "23")
		assertReturns(t, end)
		assert.Empty(t, f.requested())
	})
}

func TestCatchUpListsPagesOfOneVersion(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		var requests []metav1.ListOptions
		f.answer("httproutes", func(o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			requests = append(requests, o)
			switch len(requests) {
			case 2:
				return nil, apierrors.NewResourceExpired("too old")
			case 4:
				return metadataOf("20", routeAt("b", 13)), nil
			}
			first := metadataOf("20", routeAt("a", 12))
			first.Continue = "more"
			return first, nil
		})
		end := f.catchUp(t.Context())
		time.Sleep(time.Second) // the pause before it begins again
		f.update(f.of(httpCRD), routeAt("a", 12))
		assertWaits(t, end, "a route of the second page is missing")
		f.update(f.of(httpCRD), routeAt("b", 13))
		assertReturns(t, end)
		first, more := metav1.ListOptions{Limit: catchUpPageSize}, metav1.ListOptions{Limit: catchUpPageSize, Continue: "more"}
		assert.Equal(t, []metav1.ListOptions{first, more, first, more}, requests)
	})
}

func TestCatchUpObservesPendingWrites(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		absent, ofNoKind := pRef, pRef
		absent.Name, ofNoKind.Kind = "absent", "Unknown"
		f.hasList("colorpolicies", "20", policyAt("p", 13), policyAt("q", 14))
		end := f.catchUp(t.Context(), absent, pRef, ofNoKind)
		f.feed(f.of(colorCRD), "21")
		assertReturns(t, end, snapshot.Observation{Ref: absent, Deleted: true}, snapshot.Observation{Ref: pRef, UID: "uid-of-p", Version: "13"})
	})
}

func TestCatchUpEndsWithContext(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasList("httproutes", "20", routeAt("a", 12))
		ctx, cancel := context.WithCancel(t.Context())
		end := f.catchUp(ctx)
		cancel()
		got := <-end
		require.ErrorIs(t, got.err, context.Canceled)
		require.EqualError(t, got.err, "wait until the cache has the list of httproutes: context canceled")

		f.fail("services", errLost)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f.requested()
		got = <-f.catchUp(ctx)
		require.ErrorIs(t, got.err, context.DeadlineExceeded)
		retries := slices.DeleteFunc(f.requested(), func(r string) bool { return r != "services" })
		assert.Greater(t, len(retries), 50)
		assert.Less(t, len(retries), 120, "less than two in a second")

		f.hasList("services", "20")
		end = f.catchUp(t.Context())
		f.update(f.of(httpCRD), routeAt("a", 12))
		assertReturns(t, end)
	})
}

func TestCatchUpFollowsReplacedReflector(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasList("colorpolicies", "20", policyAt("p", 13))
		end := f.catchUp(t.Context(), pRef)
		old := f.of(colorCRD)
		f.hasList("colorpolicies", "30", policyAt("p", 25))
		direct := crdAt(edited(colorCRD, func(c *crd) { c.label = "direct" }), 22)
		f.update(f.definitions, direct)
		f.update(old, policyAt("p", 13))
		assertWaits(t, end, "the kind is being read again")
		f.feed(f.of(colorCRD), "24", policyAt("p", 13))
		assertWaits(t, end, "the policy is older than in the second list")
		f.update(f.of(colorCRD), policyAt("p", 25))
		assertReturns(t, end, snapshot.Observation{Ref: pRef, UID: "uid-of-p", Version: "25"})
	})
}

// The resource of a definition that is deleted is not served for a moment before the
// watch reports this.
func TestCatchUpDoesNotWaitForRemovedKind(t *testing.T) {
	for name, list := range map[string]func(*catchUpFixture, crd){
		"it was listed":   func(f *catchUpFixture, c crd) { f.hasList(c.plural, "20", routeAt("a", 12)) },
		"it is not found": func(f *catchUpFixture, c crd) { f.fail(c.plural, apierrors.NewNotFound(schema.GroupResource{}, "")) },
	} {
		for _, c := range []crd{httpCRD, colorCRD} {
			t.Run(name+" "+c.kind, func(t *testing.T) {
				runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
					list(f, c)
					end := f.catchUp(t.Context(), pRef)
					time.Sleep(5 * time.Second)
					assertWaits(t, end, "it may have objects")
					f.hasList("colorpolicies", "20")
					require.NoError(t, f.definitions.store.Delete(crdAt(c, 22)))
					synctest.Wait()
					require.Len(t, end, 1)
					assert.NoError(t, (<-end).err)
				})
			})
		}
	}
}

func TestCatchUpWithoutUnreadableResources(t *testing.T) {
	t.Run("a policy kind that was never listed", func(t *testing.T) {
		runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
			f.fail("authpolicies", errNoRight)
			f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(authCRD, 12))
			f.update(f.definitions, crdAt(authCRD, 12))
			auth := api.Ref{Group: authCRD.group, Kind: authCRD.kind, Namespace: "app", Name: "a"}
			end := f.catchUp(t.Context(), auth)
			assertWaits(t, end, "only the list of metadata is known to be forbidden")
			f.of(authCRD).onForbidden(errNoRight)
			time.Sleep(5 * time.Second)
			assertReturns(t, end)
			assert.True(t, f.registry.store.Pending(auth.PolicyKind()), "its writes are rejected")
		})
	})
	for name, failure := range map[string]error{"a policy kind that was listed": errNoRight, "a policy kind that cannot be converted any more": errUnconverted} {
		t.Run(name, func(t *testing.T) {
			runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
				f.checkSources(time.Now())
				f.fail("colorpolicies", failure)
				end := f.catchUp(t.Context(), pRef)
				time.Sleep(StaleAfter)
				f.checkSources(time.Now())
				assertWaits(t, end, "its writes are evaluated")
				require.NoError(t, f.CheckFresh(colorRef))
				time.Sleep(2 * slowBackoff.Cap)
				f.checkSources(time.Now())
				time.Sleep(2 * slowBackoff.Cap)
				assertReturns(t, end)
				require.ErrorContains(t, f.CheckFresh(colorRef), "colorpolicies")
				require.NoError(t, f.StaleError())

				f.feed(f.of(colorCRD), "20")
				f.hasList("colorpolicies", "30", policyAt("p", 25))
				f.of(colorCRD).health.watchOpened(false)
				f.checkSources(time.Now())
				end = f.catchUp(t.Context())
				assertWaits(t, end, "it is read again")
				f.feed(f.of(colorCRD), "30")
				assertReturns(t, end)
			})
		})
	}
	t.Run("a kind of Gateway API that was never listed", func(t *testing.T) {
		runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
			f.fail("tlsroutes", errNoRight)
			f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(tlsCRD, 12))
			f.update(f.definitions, crdAt(tlsCRD, 12))
			assertReturns(t, f.catchUp(t.Context()))
		})
	})
	t.Run("a kind of Gateway API that was listed", func(t *testing.T) {
		runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
			f.fail("httproutes", errNoRight)
			end := f.catchUp(t.Context())
			time.Sleep(time.Hour)
			assertWaits(t, end, "its cache may be late")
			f.hasList("httproutes", "10")
			time.Sleep(10 * time.Second)
			assertReturns(t, end)
		})
	})
}

func TestCatchUpWithoutUnlistableKind(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(authCRD, 12))
		f.update(f.definitions, crdAt(authCRD, 12))
		end := f.catchUp(t.Context())
		f.of(authCRD).health.recordFailure(errUnconverted)
		assertWaits(t, end, "the API server may be overloaded")
		time.Sleep(initialListTimeout + time.Second)
		f.checkSources(time.Now())
		assertReturns(t, end)
		assert.NoError(t, f.CheckFresh(colorRef))
	})
}

func TestCatchUpGivesKindTimeToBeListed(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(authCRD, 12))
		f.update(f.definitions, crdAt(authCRD, 12))
		f.of(authCRD).onForbidden(errNoRight)
		end := f.catchUp(t.Context())
		time.Sleep(StaleAfter)
		assertWaits(t, end, "the permission was just granted")
		time.Sleep(time.Second)
		assertReturns(t, end)
	})
}

func TestCatchUpWithoutStaleKind(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.of(colorCRD).health.watchClosed()
		time.Sleep(StaleAfter + time.Second)
		f.checkSources(time.Now())
		require.Error(t, f.CheckFresh(colorRef))
		f.hasList("colorpolicies", "20", policyAt("p", 13))
		end := f.catchUp(t.Context())
		time.Sleep(StaleAfter)
		f.checkSources(time.Now())
		assertWaits(t, end, "its watch may be reopened at any moment")
		time.Sleep(time.Second)
		f.checkSources(time.Now())
		assertReturns(t, end)
	})
}
