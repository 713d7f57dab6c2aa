package cache

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// ReadLive reads an object from the API server: of a kind of Gateway API, a Service, a
// Namespace, a policy, or of a kind that is Selectable. It returns nil if the object does not exist, if
// its kind is not installed, and for all other kinds. It implements guard.ReadLiveFunc.
func (w *Watcher) ReadLive(ctx context.Context, ref api.Ref) (snapshot.Object, error) {
	kind, kinds := ref.PolicyKind(), w.currentKinds()
	decode, policies := labelDecoder(kind), kinds.Of(kind)
	if policies != nil {
		decode = policyDecoder(policies)
	}
	if policies != nil || kinds.Selectable(kind) {
		o, err := w.stored(ctx, ref, decode)
		if apierrors.IsForbidden(err) { // which is one of the Problems
			return nil, nil
		}
		return o, err
	}
	b := builtinOf(kind)
	if b == nil || b.example == nil || !isValidName(ref) {
		return nil, nil
	}
	obj, err := w.clients.clientFor(b, w.versionOf(b)).Get().
		NamespaceIfScoped(ref.Namespace, ref.Namespace != "").Resource(b.resource).Name(ref.Name).Do(ctx).Get()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the API server: %w", ref, err)
	}
	return b.decode(obj)
}

// Stored reads a policy from the API server, in the version that is read. It returns
// nil if it does not exist.
func (w *Watcher) Stored(ctx context.Context, kind *policykind.Kind, ref api.Ref) (snapshot.Object, error) {
	return w.stored(ctx, ref, policyDecoder(kind))
}

func (w *Watcher) stored(ctx context.Context, ref api.Ref, decode decoder) (snapshot.Object, error) {
	resource, ok := w.ServedResource(ref.PolicyKind())
	if !ok || !isValidName(ref) {
		return nil, nil
	}
	obj, err := w.clients.policies.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the API server: %w", ref, err)
	}
	return decode(obj)
}

// ReadStored reads the state of an object from the API server. Deleted is set if it does
// not exist; the observation is zero if objects of its kind are not read. It implements
// inflight.Options.ReadStored.
func (w *Watcher) ReadStored(ctx context.Context, ref api.Ref) (snapshot.Observation, error) {
	all := w.reflectors()
	i := slices.IndexFunc(all, func(f *reflector) bool { return f.kind == ref.PolicyKind() })
	if i < 0 {
		return snapshot.Observation{}, nil
	}
	o, err := w.clients.metadata.Resource(all[i].gvr).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return snapshot.Observation{Ref: ref, Deleted: true}, nil
	case err != nil:
		return snapshot.Observation{}, fmt.Errorf("read %s from the API server: %w", ref, err)
	}
	return snapshot.Observation{Ref: ref, UID: o.UID, Version: o.ResourceVersion}, nil
}

// isValidName reports whether an object can have the name of ref. References contain
// arbitrary strings, which may not even be valid in a URL path.
func isValidName(ref api.Ref) bool {
	return ref.Name != "" && len(content.IsPathSegmentName(ref.Name)) == 0 &&
		len(content.IsPathSegmentName(ref.Namespace)) == 0
}
