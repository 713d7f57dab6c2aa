package cache

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// listOf returns the state of a list of the routes with these names and versions.
func listOf(version uint64, routes map[string]int) state {
	s := state{version: version}
	for name, v := range routes {
		s.add(versionHash(cache.ObjectName{Namespace: "app", Name: name}, strconv.Itoa(v)))
	}
	return s
}

func routeAt(name string, version int) *gateway.RouteObject {
	o := httpRoute(name)
	o.ResourceVersion = strconv.Itoa(version)
	return o
}

func unreadableRouteAt(name string, version int) *gateway.RouteObject {
	o := routeAt(name, version)
	o.Spec = []byte(`{"hostnames": 1}`)
	return o
}

func TestProgressIsComparedWithList(t *testing.T) {
	type event = func(*sink[snapshot.Object]) error
	put := func(name string, version int) event {
		return func(k *sink[snapshot.Object]) error { return k.Update(routeAt(name, version)) }
	}
	remove := func(name string, version int) event {
		return func(k *sink[snapshot.Object]) error { return k.Delete(routeAt(name, version)) }
	}
	bookmark := func(version string) event {
		return func(k *sink[snapshot.Object]) error { return k.Bookmark(version) }
	}
	relist := func(version string, objects ...any) event {
		return func(k *sink[snapshot.Object]) error { return k.Replace(objects, version) }
	}
	ab := relist("10", routeAt("a", 3), routeAt("b", 4))
	for name, c := range map[string]struct {
		list  map[string]int // at version 20
		first event
		// missing do not suffice, last does.
		missing []event
		last    event
	}{
		"nothing was listed":          {list: nil, missing: []event{bookmark("30"), put("a", 31)}, last: relist("30")},
		"a quiet source has the list": {list: map[string]int{"a": 3, "b": 4}, last: ab},
		"a bookmark":                  {list: map[string]int{"a": 3}, first: ab, missing: []event{bookmark("19")}, last: bookmark("20")},
		"an object was created":       {list: map[string]int{"a": 3, "b": 4, "c": 12}, first: ab, last: put("c", 12)},
		"an object was updated twice": {
			list: map[string]int{"a": 3, "b": 13}, first: ab, missing: []event{put("b", 12)}, last: put("b", 13),
		},
		"an object was deleted":                           {list: map[string]int{"a": 3}, first: ab, last: remove("b", 12)},
		"an object was deleted after the list":            {list: map[string]int{"a": 3, "b": 12}, first: ab, last: remove("b", 21)},
		"objects were created and updated after the list": {list: map[string]int{"a": 3, "b": 12}, last: relist("25", routeAt("a", 22), routeAt("b", 12), routeAt("c", 23))},
		"an object was deleted and created again":         {list: map[string]int{"a": 3, "b": 14}, first: ab, missing: []event{remove("b", 12)}, last: put("b", 14)},
		"an object was replaced by one of another name":   {list: map[string]int{"a": 3, "c": 14}, first: ab, missing: []event{put("c", 14)}, last: remove("b", 15)},
		"two objects have swapped versions":               {list: map[string]int{"a": 4, "b": 3}, first: ab, last: bookmark("20")},
		"a relist that is older than the list":            {list: map[string]int{"a": 3, "b": 12}, first: ab, missing: []event{relist("15", routeAt("a", 3))}, last: relist("21")},
		"a relist with the same objects":                  {list: map[string]int{"a": 3, "b": 12}, first: ab, last: relist("15", routeAt("a", 3), routeAt("b", 12))},
		"objects that cannot be decoded": {
			list: map[string]int{"a": 3, "b": 12}, first: relist("10", unreadableRouteAt("a", 3)),
			last: func(k *sink[snapshot.Object]) error { return k.Update(unreadableRouteAt("b", 12)) },
		},
		"an object that was deleted in a missed event": {
			list: map[string]int{"a": 3}, first: ab,
			last: func(k *sink[snapshot.Object]) error { return k.Delete(cache.DeletedFinalStateUnknown{Key: "app/b"}) },
		},
		"versions that are no numbers": {list: map[string]int{"a": 3}, first: ab, missing: []event{bookmark("x"), bookmark("")}, last: bookmark("20")},
	} {
		t.Run(name, func(t *testing.T) {
			k := routeSink(snapshot.New())
			list := listOf(20, c.list)
			steps := append([]event{c.first}, append(c.missing, c.last)...)
			for i, step := range steps {
				if step == nil {
					continue
				}
				require.NoError(t, step(k))
				assert.Equal(t, i == len(steps)-1, k.progress.has(list), "after event %d", i)
			}
		})
	}
}

func TestProgressIncludesExemptNamespace(t *testing.T) {
	s := snapshot.New()
	k := routeSink(s)
	k.target = objectTarget{store: s, kind: route, exempt: "app"}
	require.NoError(t, k.Replace([]any{routeAt("a", 3)}, "10"))
	require.NoError(t, k.Update(routeAt("b", 12)))
	assert.True(t, k.progress.has(listOf(20, map[string]int{"a": 3, "b": 12})))
	assert.Empty(t, storedRoutes(s))
}

func TestClosedSinkMakesNoProgress(t *testing.T) {
	k := routeSink(snapshot.New())
	k.close()
	require.NoError(t, k.Replace(nil, "30"))
	assert.False(t, k.progress.has(listOf(20, nil)))
}
