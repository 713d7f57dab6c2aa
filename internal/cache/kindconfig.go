package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// ViewAfterKindChange returns the view as it would be after a PolicyProfile or a
// CustomResourceDefinition is written (guard.KindReader): before is nil on a create, after
// on a delete. Policies of kinds that are then read differently are listed from the API
// server; if there are none, it returns v itself.
//
// Policies of a kind that may not be listed count as absent: the kind is a Problem and
// is ignored. The error is a policykind.DefinedError for a second definition of a kind.
//
// A profile that is terminating, or will be deleted with its owner, does not replace
// another one, before or after the write: its final deletion is not evaluated. This
// does not apply to the profile that is written.
func (w *Watcher) ViewAfterKindChange(ctx context.Context, v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error) {
	current := w.registry.kindConfig()
	for _, pending := range v.Readings() { // not observed by a watch yet
		if err := current.apply(pending.Before, pending.After); err != nil {
			return nil, err
		}
	}
	if err := current.apply(nil, before); err != nil { // the request is newer than the watch
		return nil, err
	}
	if err := current.checkDuplicate(before, after); err != nil {
		return nil, err
	}
	current.profiles.RemoveDeleting(nameOf(before, after))
	next := current.clone()
	if err := next.apply(before, after); err != nil {
		return nil, err
	}
	changes := next.droppedObjects(v, current)
	kinds, changed := next.kinds(v, current)
	for _, c := range changed {
		policies, err := w.listPolicies(ctx, c)
		if err != nil {
			return nil, err
		}
		changes = append(changes, policies...)
	}
	unlisted := next.unlisted(v, current)
	if len(changes) == 0 && sameKinds(kinds, v.Kinds()) && len(unlisted) == len(v.Unlisted()) {
		return v, nil
	}
	return v.WithKinds(kinds).WithUnlisted(unlisted).With(changes...), nil
}

// unlisted returns the kinds that were never listed and are read as with the earlier
// configuration.
func (c kindConfig) unlisted(v *snapshot.View, earlier kindConfig) []*policykind.Kind {
	oldKinds, newKinds := earlier.policies(), c.policies()
	return slices.DeleteFunc(slices.Clone(v.Unlisted()), func(k *policykind.Kind) bool {
		return !sameKind(oldKinds[k.Ref()].kind, newKinds[k.Ref()].kind)
	})
}

// nameOf returns the name of the written PolicyProfile, "" for other objects.
func nameOf(before, after snapshot.Object) string {
	for _, o := range []snapshot.Object{after, before} {
		if p, ok := o.(*policykind.Profile); ok {
			return p.Name
		}
	}
	return ""
}

// kindConfig is the configuration that determines how kinds are read.
type kindConfig struct {
	definitions map[string]*definition
	profiles    *policykind.Profiles
}

func (r *registry) kindConfig() kindConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kindConfig{maps.Clone(r.definitions), r.profiles.Clone()}
}

func (c kindConfig) clone() kindConfig {
	return kindConfig{maps.Clone(c.definitions), c.profiles.Clone()}
}

// apply applies the write of a profile or a definition; after is nil on a delete.
func (c *kindConfig) apply(before, after snapshot.Object) error {
	switch o := after.(type) {
	case *policykind.Profile:
		(&profile{PolicyProfile: o.PolicyProfile}).addTo(c.profiles)
		return nil
	case *policykind.Definition:
		c.definitions[o.Name] = parseDefinition(&o.CustomResourceDefinition)
		return c.resetProfiles()
	}
	switch o := before.(type) {
	case *policykind.Profile:
		c.profiles.Remove(o.Name)
	case *policykind.Definition:
		delete(c.definitions, o.Name)
		return c.resetProfiles()
	}
	return nil
}

// resetProfiles removes the profiles of the cluster if the kind PolicyProfile is not
// served.
func (c *kindConfig) resetProfiles() (err error) {
	if d := c.definitions[profilesDefinition]; d == nil || !d.served() {
		c.profiles, err = policykind.NewProfiles()
	}
	return err
}

// policyResource is a policy kind with the resource that its policies are listed from.
type policyResource struct {
	kind           *policykind.Kind
	resource       schema.GroupVersionResource
	definition     string // the name of its definition
	previousSchema *policykind.Schema
}

// same reports whether the same policies are read in the same way.
func (r policyResource) same(other policyResource) bool {
	return r.definition == other.definition && sameKind(r.kind, other.kind)
}

// policies returns the policy kinds that are read.
func (c kindConfig) policies() map[api.PolicyKind]policyResource {
	out := make(map[api.PolicyKind]policyResource)
	for of, d := range activeDefinitions(maps.Values(c.definitions)) {
		if k, err := d.policyKind(c.profiles); err == nil && k != nil {
			out[of] = policyResource{kind: k, resource: d.resource, definition: d.name}
		}
	}
	return out
}

// kinds returns the policy kinds of a view with this configuration, and those whose
// policies are read differently than with the earlier one. The latter are listed in the
// version that is served before the write.
func (c kindConfig) kinds(v *snapshot.View, earlier kindConfig) (all []*policykind.Kind, changed []policyResource) {
	oldKinds, newKinds := earlier.policies(), c.policies()
	for _, k := range v.Kinds() {
		if oldKinds[k.Ref()].same(newKinds[k.Ref()]) {
			all = append(all, k)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(newKinds), api.ComparePolicyKinds) {
		if now, old := newKinds[ref], oldKinds[ref]; !old.same(now) {
			if d := earlier.definitions[now.definition]; d != nil && d.served() {
				now.resource, now.previousSchema = d.resource, d.schema
			}
			all, changed = append(all, now.kind), append(changed, now)
		}
	}
	return all, changed
}

// droppedObjects deletes the objects of kinds of Gateway API and of constraints that
// are served with the earlier configuration, but not with this one.
func (c kindConfig) droppedObjects(v *snapshot.View, earlier kindConfig) []snapshot.Change {
	var out []snapshot.Change
	for name, d := range earlier.definitions {
		now := c.definitions[name]
		if d.gateway == nil && d.constraints == nil || !d.served() || now != nil && now.served() {
			continue
		}
		for o := range v.Objects(d.groupKind) {
			out = append(out, snapshot.Delete(o.Ref()))
		}
	}
	return out
}

func sameKinds(a, b []*policykind.Kind) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(k *policykind.Kind) bool { return !slices.Contains(b, k) })
}

// listPolicies lists the current policies of a kind and converts them as they will be
// read.
func (w *Watcher) listPolicies(ctx context.Context, r policyResource) ([]snapshot.Change, error) {
	var out []snapshot.Change
	decode, leavesOut := coercingDecoder(r.kind, r.previousSchema), objectTarget{exempt: w.registry.exemptNamespace}.isExempt
	err := w.eachPolicy(ctx, r.resource, func(obj runtime.Object) {
		o, err := decode(obj)
		if err != nil {
			w.registry.logger(r.resource.Resource).Error(err, "cannot read object; treating it as absent")
		} else if !leavesOut(o) {
			out = append(out, snapshot.Put(o))
		}
	})
	return out, err
}

// eachPolicy lists the current policies of a resource.
func (w *Watcher) eachPolicy(ctx context.Context, r schema.GroupVersionResource, visit func(runtime.Object)) error {
	lw := w.clients.policiesListWatch(r)
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lw.ListWithContext(ctx, o)
	})
	// The list is consistent: the watch cache of an API server can be older than the view.
	err := pages.EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		visit(obj)
		return nil
	})
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("list %s to evaluate the change: %w", r.GroupResource(), err)
}
