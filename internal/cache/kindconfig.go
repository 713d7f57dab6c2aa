package cache

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// ViewAfterKindChange returns the view as it would be after a PolicyProfile or a
// CustomResourceDefinition is written (guard.KindReader): before is nil on a create, after
// on a delete. A kind whose policies are read differently then counts as not listed: what
// its policies are is not known before the API server serves them. If nothing changes, it
// returns v itself. The error is a policykind.DefinedError for a second definition of a kind.
//
// A profile that is terminating, or will be deleted with its owner, does not replace
// another one, before or after the write: its final deletion is not evaluated. This
// does not apply to the profile that is written.
func (w *Watcher) ViewAfterKindChange(v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error) {
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
	dropped := next.droppedObjects(v, current)
	listed, unlisted := next.kinds(v, current)
	if len(dropped) == 0 && sameKinds(listed, v.Kinds()) && sameKinds(unlisted, v.Unlisted()) {
		return v, nil
	}
	return v.WithKinds(listed).WithUnlisted(unlisted).With(dropped...), nil
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

// policies returns the policy kinds that are read.
func (c kindConfig) policies() map[api.PolicyKind]policyResource {
	out := make(map[api.PolicyKind]policyResource)
	for of, d := range activeDefinitions(maps.Values(c.definitions)) {
		if k, err := d.policyKind(c.profiles); err == nil && k != nil {
			out[of] = policyResource{k, d.name}
		}
	}
	return out
}

// policyResource is a policy kind with the name of its definition.
type policyResource struct {
	kind       *policykind.Kind
	definition string
}

// same reports whether the same policies are read in the same way.
func (r policyResource) same(other policyResource) bool {
	return r.definition == other.definition && (r.kind == other.kind || r.kind != nil && other.kind != nil && r.kind.ReadsLike(other.kind))
}

// kinds returns the policy kinds of a view with this configuration: those that are read as
// with the earlier one stay listed, or not listed, and all others are not listed.
func (c kindConfig) kinds(v *snapshot.View, earlier kindConfig) (listed, unlisted []*policykind.Kind) {
	oldKinds, newKinds := earlier.policies(), c.policies()
	stays := func(k *policykind.Kind) bool { return oldKinds[k.Ref()].same(newKinds[k.Ref()]) }
	for _, k := range v.Kinds() {
		if stays(k) {
			listed = append(listed, k)
		}
	}
	for _, k := range v.Unlisted() {
		if stays(k) {
			unlisted = append(unlisted, k)
		}
	}
	for ref, now := range newKinds {
		if !oldKinds[ref].same(now) {
			unlisted = append(unlisted, now.kind)
		}
	}
	return listed, unlisted
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
