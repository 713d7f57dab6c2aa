package cache

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// catchUpFixture is a Watcher whose reflectors the test feeds. Lists of metadata fail unless
// the test has set one, so that everything must be listed in full.
type catchUpFixture struct {
	*Watcher
	t *testing.T
	fakeMetadata
}

// fakeMetadata answers lists of metadata, by resource.
type fakeMetadata map[string]func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)

type metadataOf struct {
	metadata.Getter
	list func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

// Resource implements metadata.Interface.
func (f fakeMetadata) Resource(r schema.GroupVersionResource) metadata.Getter {
	return metadataOf{list: f[r.Resource]}
}

// List implements metadata.ResourceInterface.
func (m metadataOf) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if m.list == nil {
		return nil, errLost
	}
	return m.list(o)
}

func metadataPage(version string, items ...metav1.Object) *metav1.PartialObjectMetadataList {
	out := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, o := range items {
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		}})
	}
	return out
}

func (f fakeMetadata) hasList(resource, version string, items ...metav1.Object) {
	f[resource] = func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		return metadataPage(version, items...), nil
	}
}

// hasLists answers with what the fixture was fed.
func (f *catchUpFixture) hasLists() {
	f.hasList(sourceDefinitions, "20", crdAt(httpCRD, 1), crdAt(colorCRD, 2))
	for _, resource := range []string{sourceNamespaces, sourceServices, "httproutes", "colorpolicies"} {
		f.hasList(resource, "20")
	}
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

// newCatchUpFixture has HTTPRoutes and ColorPolicies, and watches of everything.
func newCatchUpFixture(t *testing.T) *catchUpFixture {
	f := &catchUpFixture{t: t, fakeMetadata: fakeMetadata{}}
	var err error
	f.Watcher, err = New(&rest.Config{Host: "http://127.0.0.1:1"}, snapshot.New(Sources...), Options{})
	require.NoError(t, err)
	f.clients.metadata = f.fakeMetadata
	f.start = func(r *reflector) { r.cancel, r.health.changes = func() {}, &f.changes }
	for _, r := range append(f.core, f.definitions) {
		f.start(r)
	}
	f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2))
	f.feedAll(httpCRD, colorCRD)
	for _, r := range f.reflectors() {
		r.health.watchOpened(false)
	}
	return f
}

// feedAll gives empty lists to the core kinds and others.
func (f *catchUpFixture) feedAll(kinds ...crd) {
	for _, r := range f.core {
		f.feed(r)
	}
	for _, c := range kinds {
		f.feed(f.of(c))
	}
}

func (f *catchUpFixture) of(c crd) *reflector { return f.watched[c.obj().Name].reflector }

// feed gives a reflector a full list that is requested now.
func (f *catchUpFixture) feed(r *reflector, objects ...metav1.Object) {
	f.t.Helper()
	r.health.listRequested()
	f.finish(r, objects...)
}

// finish completes a list that was requested.
func (f *catchUpFixture) finish(r *reflector, objects ...metav1.Object) {
	f.t.Helper()
	var all []any
	for _, o := range objects {
		all = append(all, o)
	}
	require.NoError(f.t, r.store.Replace(all, "10"))
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

// catchUp calls CatchUp in the background.
func (f *catchUpFixture) catchUp(ctx context.Context, pending ...api.Ref) <-chan result {
	time.Sleep(time.Millisecond) // what was requested before is earlier
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

// The reflectors list again at once, although their watches are open.
func TestCatchUpListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
		s.answer(nil, *httpRoute("a"))
		w := watcherOf(s, logr.Discard())
		w.clients = &clients{metadata: fakeMetadata{}}
		during(t, w, func() {
			for i := range 3 {
				open := <-s.watched
				time.Sleep(time.Minute)
				s.answer(nil, *httpRoute("b" + strconv.Itoa(i)))
				began, end := time.Now(), make(chan error, 1)
				go func() {
					_, err := w.CatchUp(t.Context(), nil)
					end <- err
				}()
				synctest.Wait()
				require.NoError(t, <-end)
				assert.Zero(t, time.Since(began), "it does not pause")
				assert.Equal(t, map[string][]string{"app/b" + strconv.Itoa(i): nil}, storedRoutes(w.store))
				assert.True(t, open.IsStopped())
				assert.NoError(t, w.StaleError())
			}
			<-s.watched
		})
		assert.Zero(t, w.definitions.health.get().Failures)
	})
}

// A source that has what is stored is not listed again.
func TestCatchUpComparesMetadata(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasLists()
		absent := pRef
		absent.Name = "absent"
		f.hasList("colorpolicies", "20", policyAt("p", 13), policyAt("q", 12))
		end := f.catchUp(t.Context(), absent, pRef)
		time.Sleep(eventTimeout / 2)
		assertWaits(t, end, "events are late")
		require.NoError(t, f.of(colorCRD).store.Add(policyAt("q", 12)))
		require.NoError(t, f.of(colorCRD).store.Add(policyAt("p", 13)))
		time.Sleep(eventTimeout / 10)
		assertReturns(t, end, snapshot.Observation{Ref: absent, Deleted: true}, snapshot.Observation{Ref: pRef, UID: "uid-of-p", Version: "13"})

		f.hasList("colorpolicies", "20", policyAt("p", 13))
		end = f.catchUp(t.Context())
		assertWaits(t, end, "a deletion is late")
		require.NoError(t, f.of(colorCRD).store.Delete(policyAt("q", 19)))
		time.Sleep(eventTimeout / 10)
		assertReturns(t, end)

		f.hasList("colorpolicies", "30")
		end = f.catchUp(t.Context())
		time.Sleep(2 * eventTimeout)
		assertWaits(t, end, "a deletion is late")
		f.feed(f.of(colorCRD))
		assertReturns(t, end)
	})
}

func TestCatchUpListsPagesOfOneVersion(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasLists()
		var requests []metav1.ListOptions
		var last error
		f.fakeMetadata["httproutes"] = func(o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			if requests = append(requests, o); o.Continue != "" {
				return metadataPage("20", routeAt("b", 8)), last
			}
			first := metadataPage("20", routeAt("a", 9))
			first.Continue = "more"
			return first, nil
		}
		f.feed(f.of(httpCRD), routeAt("a", 9), routeAt("b", 8))
		assertReturns(t, f.catchUp(t.Context()))
		first := metav1.ListOptions{Limit: metadataPageSize}
		assert.Equal(t, []metav1.ListOptions{first, {Limit: metadataPageSize, Continue: "more"}}, requests)

		last = apierrors.NewResourceExpired("too old")
		end := f.catchUp(t.Context())
		assertWaits(t, end, "it is listed in full")
		f.feed(f.of(httpCRD))
		assertReturns(t, end)
	})
}

func TestSourceHasList(t *testing.T) {
	for sentence, c := range map[string]struct {
		reached string
		objects int
		want    bool
	}{
		"it has reached the version of the list": {"20", 9, true},
		"it has all objects, and no later event": {"15", 2, true},
		"the newest object is missing":           {"14", 1, false},
		"an object has not been updated":         {"14", 2, false},
		"an object has been deleted":             {"15", 3, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			list := &metadataList{version: 20, newest: 15, requested: time.Unix(100, 0), objects: map[cache.ObjectName]snapshot.Observation{
				{Name: "a"}: {}, {Name: "b"}: {},
			}}
			h := newHealthTracker("httproutes")
			assert.False(t, h.verify(list), "nothing was listed")
			h.recordList(c.reached, c.objects)
			assert.Equal(t, c.want, h.verify(list))
			assert.Equal(t, c.want, h.listedSince(list.requested))
			h.expire(errSuspended)
			assert.False(t, h.verify(list))
		})
	}
}

func TestListOfMetadataShowsThatStorageWasRestored(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.hasLists()
		f.hasList("httproutes", "9")
		var got []restore
		f.of(httpCRD).health.onRestore = func(r restore) { got = append(got, r) }
		end := f.catchUp(t.Context())
		assertWaits(t, end, "it is behind the source")
		require.Len(t, got, 1)
		assert.Equal(t, &RestoredError{Source: "httproutes", Stored: 9, Reached: 10}, got[0].err)
		f.feed(f.of(httpCRD))
		assertReturns(t, end)
	})
}

func TestCatchUpWaitsForEachSource(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		f.of(colorCRD).health.listRequested()
		end := f.catchUp(t.Context())
		f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2))
		f.feedAll(httpCRD)
		assertWaits(t, end, "one is late")
		f.finish(f.of(colorCRD))
		assertWaits(t, end, "its list was requested before")
		f.update(f.of(colorCRD), policyAt("p", 13))
		assertWaits(t, end, "a watch may be late")
		f.feed(f.of(colorCRD))
		assertReturns(t, end)
	})
}

// Definitions and profiles determine what is read.
func TestCatchUpWaitsForWhatIsDefined(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		end := f.catchUp(t.Context())
		f.feedAll(httpCRD, colorCRD)
		assertWaits(t, end, "a definition may be missing")
		f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2), crdAt(profileCRD, 12), crdAt(paintCRD, 13))
		assertWaits(t, end, "a profile may be missing")
		f.feed(f.of(profileCRD), paint(t, "paint", 1, "direct"))
		assertWaits(t, end, "a kind has not been listed")
		f.feed(f.of(paintCRD))
		assertReturns(t, end)
	})
}

func TestCatchUpObservesDeletions(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		absent, ofNoKind := pRef, pRef
		absent.Name, ofNoKind.Kind = "absent", "Unknown"
		f.update(f.of(colorCRD), policyAt("absent", 13))
		var seen []snapshot.Observation
		f.store.Watch(func(o []snapshot.Observation) { seen = append(seen, o...) })
		end := f.catchUp(t.Context(), absent, pRef, ofNoKind)
		f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2))
		f.feedAll(httpCRD)
		f.feed(f.of(colorCRD), policyAt("p", 14))
		assertReturns(t, end, snapshot.Observation{Ref: absent, Deleted: true})
		require.NotEmpty(t, seen)
		last := seen[len(seen)-1]
		assert.Equal(t, snapshot.Observation{Ref: pRef, UID: "uid-of-p", Version: "14", Marks: last.Marks}, last)
	})
}

func TestCatchUpEndsWithContext(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		ctx, cancel := context.WithCancel(t.Context())
		end := f.catchUp(ctx)
		f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2))
		f.feedAll(colorCRD)
		cancel()
		got := <-end
		require.ErrorIs(t, got.err, context.Canceled)
		require.EqualError(t, got.err, "wait until httproutes are listed again: context canceled")
	})
}

func TestCatchUpFollowsReplacedReflector(t *testing.T) {
	runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
		end := f.catchUp(t.Context(), pRef)
		f.feedAll(httpCRD, colorCRD)
		direct := crdAt(edited(colorCRD, func(c *crd) { c.label = "direct" }), 22)
		f.feed(f.definitions, crdAt(httpCRD, 1), direct)
		assertWaits(t, end, "the kind is being read again")
		f.feed(f.of(colorCRD), policyAt("p", 25))
		assertReturns(t, end)
	})
}

// The resource of a definition that is deleted is not served for a moment before the
// list of definitions shows this.
func TestCatchUpDoesNotWaitForRemovedKind(t *testing.T) {
	for _, c := range []crd{httpCRD, colorCRD} {
		t.Run(c.kind, func(t *testing.T) {
			runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
				end := f.catchUp(t.Context())
				f.feed(f.definitions, crdAt(httpCRD, 1), crdAt(colorCRD, 2))
				if c.kind == httpCRD.kind {
					f.feedAll(colorCRD)
				} else {
					f.feedAll(httpCRD)
				}
				time.Sleep(5 * time.Second)
				assertWaits(t, end, "it may have objects")
				require.NoError(t, f.definitions.store.Delete(crdAt(c, 22)))
				assertReturns(t, end)
			})
		})
	}
}

func TestCatchUpWithoutUnreadableResources(t *testing.T) {
	for name, c := range map[string]struct {
		crd     crd
		listed  bool
		failure error
		want    time.Duration // how long it waits; 0 for not at all, -1 for ever
	}{
		"a forbidden policy kind that was never listed":                    {authCRD, false, errNoRight, 0},
		"a policy kind that was never listed and cannot be":                {authCRD, false, errUnconverted, initialListTimeout},
		"a forbidden policy kind that was listed":                          {colorCRD, true, errNoRight, StaleAfter},
		"a policy kind that was listed and cannot be converted now":        {colorCRD, true, errUnconverted, StaleAfter},
		"a forbidden kind of Gateway API that was never listed":            {tlsCRD, false, errNoRight, 0},
		"a kind of Gateway API that was never listed and does not respond": {tlsCRD, false, errLost, -1},
		"a forbidden kind of Gateway API that was listed":                  {httpCRD, true, errNoRight, -1},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFixture(t, func(t *testing.T, f *catchUpFixture) {
				defined := []metav1.Object{crdAt(httpCRD, 1), crdAt(colorCRD, 2)}
				if !c.listed {
					defined = append(defined, crdAt(c.crd, 3))
					f.update(f.definitions, crdAt(c.crd, 3))
				}
				fail := func() {
					f.of(c.crd).health.recordFailure(c.failure)
					if apierrors.IsForbidden(c.failure) {
						f.of(c.crd).onForbidden(errNoRight)
					}
				}
				fail()
				end := f.catchUp(t.Context())
				for _, r := range f.reflectors() { // as relist does
					r.health.watchClosed()
				}
				f.feed(f.definitions, defined...)
				for _, other := range []crd{httpCRD, colorCRD} {
					if other.kind != c.crd.kind {
						f.feedAll(other)
					}
				}
				for _, r := range f.reflectors() {
					if r != f.of(c.crd) {
						r.health.watchOpened(false)
					}
				}
				assertWaits(t, end, "it may be readable by now")
				fail()
				began := time.Now()
				for waited := time.Duration(0); waited <= c.want; waited += checkInterval {
					f.checkSources(time.Now())
					if waited < c.want {
						assertWaits(t, end, "it may be listed soon")
					}
					time.Sleep(checkInterval)
				}
				f.checkSources(time.Now())
				if c.want < 0 {
					time.Sleep(time.Hour)
					assertWaits(t, end, "it is part of all evaluations")
					f.feed(f.of(c.crd))
					assertReturns(t, end)
					return
				}
				assertReturns(t, end)
				assert.LessOrEqual(t, time.Since(began), c.want+2*checkInterval)
				kind := f.watched[c.crd.obj().Name].Kind
				if c.crd.kind != tlsCRD.kind {
					assert.True(t, f.store.Pending(kind) || f.CheckFresh(kind) != nil, "its writes are rejected")
				}
				assert.NoError(t, f.StaleError())
			})
		})
	}
}
