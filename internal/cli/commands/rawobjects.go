package commands

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// rawObjects are the undecoded objects, from which policies are decoded again
// after their kind has changed.
type rawObjects struct {
	namespace string
	objects   map[api.Ref]rawObject
	// list lists the objects of a kind on the cluster; nil for manifests. listed
	// are the kinds that have been listed.
	list   func(context.Context, api.PolicyKind) ([]map[string]any, error)
	listed map[api.PolicyKind]bool
	// deletedNamespaces were deleted with all objects in them.
	deletedNamespaces map[string]bool
}

// rawObject is an undecoded object; a nil object was deleted.
type rawObject struct {
	object  *manifest.Object
	created int64
	// resetCreation replaces the creation time of the object by created, as the API
	// server would.
	resetCreation bool
}

func (a *app) newRawObjects(s *source) *rawObjects {
	out := &rawObjects{
		namespace: s.namespace, objects: make(map[api.Ref]rawObject),
		listed: make(map[api.PolicyKind]bool), deletedNamespaces: make(map[string]bool),
	}
	if s.set == nil {
		out.list = a.listRawObjects
		return out
	}
	out.add(s.set, s.kinds)
	return out
}

// add adds the objects of a set, except those that were changed.
func (s *rawObjects) add(set *manifest.Set, kinds *manifest.Kinds) {
	for _, o := range set.Objects {
		ref := o.Ref(kinds, s.namespace)
		if _, changed := s.objects[ref]; !changed {
			s.objects[ref] = rawObject{object: o, created: merge.Undated}
		}
	}
}

// record stores the object of a change that took effect.
func (s *rawObjects) record(ref api.Ref, o *manifest.Object, created int64, removed bool) {
	if removed {
		o = nil
	}
	s.objects[ref] = rawObject{object: o, created: created, resetCreation: true}
}

// policies decodes the policies of a kind. old is the kind before the change, nil
// if it was no policy kind.
func (s *rawObjects) policies(ctx context.Context, kinds *manifest.Kinds, k, old *policykind.Kind) ([]snapshot.Change, error) {
	if err := s.fetch(ctx, kinds, k.Ref()); err != nil {
		return nil, err
	}
	var out []snapshot.Change
	var errs []error
	for ref, raw := range s.objects {
		if ref.PolicyKind() != k.Ref() || raw.object == nil || s.deletedNamespaces[ref.Namespace] {
			continue
		}
		o, err := raw.object.Coerced(k, old.Schema()).Decode(kinds, s.namespace, raw.created, raw.resetCreation)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, snapshot.Put(o))
	}
	return out, errors.Join(errs...)
}

// get returns an undecoded object, nil if it does not exist.
func (s *rawObjects) get(ctx context.Context, kinds *manifest.Kinds, ref api.Ref) (*manifest.Object, error) {
	if raw, ok := s.objects[ref]; ok {
		return raw.object, nil
	}
	if err := s.fetch(ctx, kinds, ref.PolicyKind()); err != nil {
		return nil, err
	}
	return s.objects[ref].object, nil
}

func (s *rawObjects) fetch(ctx context.Context, kinds *manifest.Kinds, ref api.PolicyKind) error {
	if s.list == nil || s.listed[ref] {
		return nil
	}
	objects, err := s.list(ctx, ref)
	if err != nil {
		return fmt.Errorf("list objects of kind %s: %w", ref, err)
	}
	set, err := manifest.FromObjects("the cluster", objects)
	if err != nil {
		return err
	}
	s.add(set, kinds)
	s.listed[ref] = true
	return nil
}

// listRawObjects lists the undecoded objects of a kind on the cluster; none if the
// kind is not installed.
func (a *app) listRawObjects(ctx context.Context, ref api.PolicyKind) ([]map[string]any, error) {
	if a.listRaw != nil {
		config, err := a.clusterConfig()
		if err != nil {
			return nil, err
		}
		return a.listRaw(ctx, config, ref)
	}
	c, err := a.newCluster(nil)
	if err != nil {
		return nil, err
	}
	resource, err := c.resource(schema.GroupKind{Group: ref.Group, Kind: ref.Kind}, "")
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return listAll(ctx, resource)
}

func listAll(ctx context.Context, client dynamic.ResourceInterface) ([]map[string]any, error) {
	var out []map[string]any
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		out = append(out, content)
		return err
	})
	return out, err
}
