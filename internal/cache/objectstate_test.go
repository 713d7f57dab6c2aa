package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

func TestSinkNotifiesAfterStoreIsUpdated(t *testing.T) {
	kind := gateway.KindOf(gateway.KindHTTPRoute)
	at := func(name string, uid types.UID, version string, deleted bool) snapshot.Observation {
		ref := api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: "app", Name: name}
		return snapshot.Observation{Ref: ref, UID: uid, Version: version, Deleted: deleted}
	}
	object := func(name string, uid types.UID, version string) *gateway.RouteObject {
		o := httpRoute(name)
		o.UID, o.ResourceVersion = uid, version
		return o
	}
	odd := object("a", "u1", "9")
	odd.Spec = []byte(`{"hostnames": 1}`)
	for name, c := range map[string]struct {
		act  func(*sink) error
		want []snapshot.Observation
		held map[string][]string
	}{
		"an object that was put": {
			func(k *sink) error { return k.Update(object("b", "u2", "7")) },
			[]snapshot.Observation{at("b", "u2", "7", false)}, map[string][]string{"app/a": nil, "app/b": nil},
		},
		"an object that cannot be read": {
			func(k *sink) error { return k.Update(odd) },
			[]snapshot.Observation{at("a", "u1", "9", false)}, map[string][]string{},
		},
		"an object that was deleted, with the version of its end": {
			func(k *sink) error { return k.Delete(object("a", "u1", "8")) },
			[]snapshot.Observation{at("a", "u1", "8", true)}, map[string][]string{},
		},
		"an object of which only the name is known": {
			func(k *sink) error { return k.Delete(cache.DeletedFinalStateUnknown{Key: "app/a"}) },
			[]snapshot.Observation{at("a", "", "", true)}, map[string][]string{},
		},
		"a list, and what it lacks": {
			func(k *sink) error {
				streamed, err := k.Transformer()(object("c", "u3", "5"))
				require.NoError(t, err)
				return k.Replace([]any{streamed, object("d", "u4", "6")}, "10")
			},
			[]snapshot.Observation{at("a", "", "", true), at("c", "u3", "5", false), at("d", "u4", "6", false)},
			map[string][]string{"app/c": nil, "app/d": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot.New()
			k := routeSink(s)
			require.NoError(t, k.Add(object("a", "u1", "1")))
			var got []snapshot.Observation
			s.Watch(func(seen []snapshot.Observation) {
				assert.Equal(t, c.held, storedRoutes(s))
				got = append(got, seen...)
			})
			require.NoError(t, c.act(k))
			assert.Equal(t, c.want, got)
		})
	}
}
