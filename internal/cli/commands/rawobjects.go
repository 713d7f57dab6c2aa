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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// sources are the objects as they are written, to be read anew when their kind
// is read in another way.
type rawObjects struct {
	namespace string
	objects   map[api.Ref]rawObject
	// list reads the objects of a kind from the cluster, once; nil for
	// manifests.
	list   func(context.Context, api.PolicyKind) ([]map[string]any, error)
	listed map[api.PolicyKind]bool
	// emptied are the namespaces that were deleted, with all that was in them.
	deletedNamespaces map[string]bool
}

// source is an object as it is written; a nil object was deleted.
type rawObject struct {
	object  *manifest.Object
	created int64
	// forget tells that the time is the API server's, whatever it says itself.
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

// add takes the objects of a set as they stand there, but for those that a
// change was made to.
func (s *rawObjects) add(set *manifest.Set, kinds *manifest.Kinds) {
	for _, o := range set.Objects {
		ref := o.Ref(kinds, s.namespace)
		if _, changed := s.objects[ref]; !changed {
			s.objects[ref] = rawObject{object: o, created: merge.Newest}
		}
	}
}

// made takes note of a change.
func (s *rawObjects) record(ref api.Ref, o *manifest.Object, created int64, removed bool) {
	if removed {
		o = nil
	}
	s.objects[ref] = rawObject{object: o, created: created, resetCreation: true}
}

// policies reads the policies of a kind. was is how they were read before, nil if
// they were not.
func (s *rawObjects) policies(ctx context.Context, kinds *manifest.Kinds, k, was *policykind.Kind) ([]snapshot.Change, error) {
	if err := s.fetch(ctx, kinds, k.Ref()); err != nil {
		return nil, err
	}
	var out []snapshot.Change
	var errs []error
	for ref, from := range s.objects {
		if ref.PolicyKind() != k.Ref() || from.object == nil || s.deletedNamespaces[ref.Namespace] {
			continue
		}
		o, err := from.object.Coerced(k, was.Schema()).Decode(kinds, s.namespace, from.created, from.resetCreation)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, snapshot.Put(o))
	}
	return out, errors.Join(errs...)
}

// stored returns an object as it is written, nil if it is not there.
func (s *rawObjects) get(ctx context.Context, kinds *manifest.Kinds, ref api.Ref) (*manifest.Object, error) {
	if from, ok := s.objects[ref]; ok {
		return from.object, nil
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
		return fmt.Errorf("read the objects of kind %s again: %w", ref, err)
	}
	set, err := manifest.FromObjects("the cluster", objects)
	if err != nil {
		return err
	}
	s.add(set, kinds)
	s.listed[ref] = true
	return nil
}

// written reads the objects of a kind from the cluster as they are written;
// none where the cluster does not have the kind.
func (a *app) listRawObjects(ctx context.Context, ref api.PolicyKind) ([]map[string]any, error) {
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	if a.listRaw != nil {
		return a.listRaw(ctx, config, ref)
	}
	return a.listFromCluster(ctx, config, ref)
}

// listFrom lists the objects of a kind.
func (a *app) listFromCluster(ctx context.Context, config *rest.Config, ref api.PolicyKind) ([]map[string]any, error) {
	mapper, err := a.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("find out what the cluster has: %w", err)
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out how the cluster names the kind: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return listAll(ctx, client.Resource(mapping.Resource))
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
