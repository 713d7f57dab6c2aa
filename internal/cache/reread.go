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

// Reread returns the view as it would be after a PolicyProfile or a
// CustomResourceDefinition is written (guard.Kinds): before is nil on a create,
// after on a delete. The policies of kinds that are read in another way then are
// listed from the API server; where nothing is, it returns v itself.
//
// Policies of a kind that may not be listed count as absent: the kind is a
// Problem, and takes no part. The error is a policykind.DefinedError for a second
// definition of a kind.
//
// A profile that is being deleted, or will be with its owner, takes the place of no
// other, before or after: no write is evaluated when it goes. That does not hold for
// the one that is written.
func (w *Watcher) Reread(ctx context.Context, v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error) {
	was := w.registry.rules()
	for _, laid := range v.Readings() { // which no watch has shown yet
		if err := was.write(laid.Before, laid.After); err != nil {
			return nil, err
		}
	}
	if err := was.write(nil, before); err != nil { // the request knows better than a watch
		return nil, err
	}
	if err := was.second(before, after); err != nil {
		return nil, err
	}
	was.profiles.RemoveDeleting(nameOf(before, after))
	is := was.clone()
	if err := is.write(before, after); err != nil {
		return nil, err
	}
	changes := is.dropped(v, was)
	kinds, changed := is.kinds(v, was)
	for _, c := range changed {
		policies, err := w.list(ctx, c)
		if err != nil {
			return nil, err
		}
		changes = append(changes, policies...)
	}
	unlisted := is.unlisted(v, was)
	if len(changes) == 0 && sameKinds(kinds, v.Kinds()) && len(unlisted) == len(v.Unlisted()) {
		return v, nil
	}
	return v.WithKinds(kinds).WithUnlisted(unlisted).With(changes...), nil
}

// unlisted returns the kinds that were never listed and are read as by the earlier
// rules.
func (b rulebook) unlisted(v *snapshot.View, earlier rulebook) []*policykind.Kind {
	was, is := earlier.policies(), b.policies()
	return slices.DeleteFunc(slices.Clone(v.Unlisted()), func(k *policykind.Kind) bool {
		return !sameKind(was[k.Ref()].kind, is[k.Ref()].kind)
	})
}

// nameOf returns the name of the PolicyProfile that is written, "" for other objects.
func nameOf(before, after snapshot.Object) string {
	for _, o := range []snapshot.Object{after, before} {
		if p, ok := o.(*policykind.Profile); ok {
			return p.Name
		}
	}
	return ""
}

// rulebook is what says how kinds are read.
type rulebook struct {
	defined  map[string]*definition
	profiles *policykind.Profiles
}

func (r *registry) rules() rulebook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rulebook{maps.Clone(r.defined), r.profiles.Clone()}
}

func (b rulebook) clone() rulebook { return rulebook{maps.Clone(b.defined), b.profiles.Clone()} }

// write writes a profile or a definition; after is nil where it is deleted.
func (b *rulebook) write(before, after snapshot.Object) error {
	switch o := after.(type) {
	case *policykind.Profile:
		(&profile{PolicyProfile: o.PolicyProfile}).putInto(b.profiles)
		return nil
	case *policykind.Definition:
		b.defined[o.Name] = define(&o.CustomResourceDefinition)
		return b.withoutProfiles()
	}
	switch o := before.(type) {
	case *policykind.Profile:
		b.profiles.Remove(o.Name)
	case *policykind.Definition:
		delete(b.defined, o.Name)
		return b.withoutProfiles()
	}
	return nil
}

// withoutProfiles forgets the profiles of the cluster if their own kind is not
// served.
func (b *rulebook) withoutProfiles() (err error) {
	if d := b.defined[profilesDefinition]; d == nil || !d.served() {
		b.profiles, err = policykind.NewProfiles()
	}
	return err
}

// read is a policy kind with the resource that its policies are listed by, and the
// schema by which the API server reads them before a write.
type read struct {
	kind     *policykind.Kind
	resource schema.GroupVersionResource
	by       string // the name of its definition
	was      *policykind.Schema
}

// same reports whether policies are read in the same way, and are the same ones.
func (r read) same(other read) bool {
	return r.by == other.by && sameKind(r.kind, other.kind)
}

// policies returns the policy kinds that are read.
func (b rulebook) policies() map[api.PolicyKind]read {
	out := make(map[api.PolicyKind]read)
	for of, d := range firsts(maps.Values(b.defined)) {
		if k, err := d.kind(b.profiles); err == nil && k != nil {
			out[of] = read{kind: k, resource: d.resource, by: d.name}
		}
	}
	return out
}

// kinds returns the policy kinds of a view as they are read by these rules, and
// those whose policies are read in another way than by the earlier ones. They
// are listed in the version that is served before the write.
func (b rulebook) kinds(v *snapshot.View, earlier rulebook) (all []*policykind.Kind, changed []read) {
	was, is := earlier.policies(), b.policies()
	for _, k := range v.Kinds() {
		if was[k.Ref()].same(is[k.Ref()]) {
			all = append(all, k)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(is), api.ComparePolicyKinds) {
		if now, old := is[ref], was[ref]; !old.same(now) {
			if d := earlier.defined[now.by]; d != nil && d.served() {
				now.resource, now.was = d.resource, d.schema
			}
			all, changed = append(all, now.kind), append(changed, now)
		}
	}
	return all, changed
}

// dropped takes out the objects of Gateway API's kinds and of constraints that
// are served by the earlier rules, and by these are not.
func (b rulebook) dropped(v *snapshot.View, earlier rulebook) []snapshot.Change {
	var out []snapshot.Change
	for name, d := range earlier.defined {
		now := b.defined[name]
		if d.gateway == nil && d.constraints == nil || !d.served() || now != nil && now.served() {
			continue
		}
		for o := range v.Objects(d.of) {
			out = append(out, snapshot.Delete(o.Ref()))
		}
	}
	return out
}

func sameKinds(a, b []*policykind.Kind) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(k *policykind.Kind) bool { return !slices.Contains(b, k) })
}

// list reads the policies of a kind that are there now, as they will be read.
func (w *Watcher) list(ctx context.Context, r read) ([]snapshot.Change, error) {
	var out []snapshot.Change
	decode, leavesOut := coerced(r.kind, r.was), objects{exempt: w.registry.exempt}.leavesOut
	err := w.each(ctx, r.resource, func(obj runtime.Object) {
		o, err := decode(obj)
		if err != nil {
			w.registry.logOf(r.resource.Resource).Error(err, "an object cannot be read and counts as absent")
		} else if !leavesOut(o) {
			out = append(out, snapshot.Put(o))
		}
	})
	return out, err
}

// each lists the policies of a resource that are there now.
func (w *Watcher) each(ctx context.Context, r schema.GroupVersionResource, show func(runtime.Object)) error {
	lw := w.clients.allPolicies(r)
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lw.ListWithContext(ctx, o)
	})
	// What the API server has in its cache is as new as what comes by a watch.
	err := pages.EachListItemWithAlloc(ctx, metav1.ListOptions{ResourceVersion: "0"}, func(obj runtime.Object) error {
		show(obj)
		return nil
	})
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("list %s to see how they would be read: %w", r.GroupResource(), err)
}
