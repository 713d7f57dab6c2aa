package cache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// decodeProfile converts a PolicyProfile. Its spec is misread if it has unknown or invalid fields.
var decodeProfile = decoderOf(func(u *unstructured.Unstructured) (snapshot.Object, error) {
	p := &policykind.Profile{}
	spec, misread, err := decodeSpec[api.PolicyProfileSpec](policykind.KindProfile.Kind, u, &p.PolicyProfile)
	if err != nil {
		return nil, err
	}
	p.Spec, p.Misread, p.ManagedFields = spec, misread, nil
	return p, nil
})

// profileProblems returns the profiles that are invalid in themselves.
func profileProblems(kinds *snapshot.Kinds) []Problem {
	var out []Problem
	for p := range kinds.Profiles() {
		if r := kinds.Refusal(p); r != nil && r.Reason == api.Invalid {
			out = append(out, Problem{profilesDefinition + "/" + p.Name, fmt.Errorf("profile not used: %s", r.Message)})
		}
	}
	return out
}

// profileTarget is the target of the reflector of PolicyProfiles.
type profileTarget struct {
	*registry
	kind *watchedKind
}

func (t profileTarget) put(p snapshot.Object) {
	t.update(func() []snapshot.Change { return []snapshot.Change{snapshot.Put(p)} })
}

func (t profileTarget) remove(ref api.Ref) {
	t.update(func() []snapshot.Change { return []snapshot.Change{snapshot.Delete(ref)} })
}

func (t profileTarget) replace(all []snapshot.Object) {
	t.update(func() []snapshot.Change {
		t.markListed(t.kind)
		var out []snapshot.Change
		for p := range t.kinds.Profiles() {
			out = append(out, snapshot.Delete(p.Ref()))
		}
		for _, p := range all {
			out = append(out, snapshot.Put(p))
		}
		return out
	})
}

// update applies changes of profiles, unless the reflector was stopped.
func (t profileTarget) update(changes func() []snapshot.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[profilesDefinition] != t.kind {
		return
	}
	earlier := t.kinds
	t.setKinds(t.kinds.With(changes()...))
	t.logRefused(earlier)
	signal(t.statusChanged)
}

// logRefused logs which profiles that have changed are not in force.
func (r *registry) logRefused(earlier *snapshot.Kinds) {
	for p := range r.kinds.Profiles() {
		old := earlier.Profile(p.Name)
		if old != nil && old.UID == p.UID && old.Generation == p.Generation {
			continue // only its status changed
		}
		if refused := r.kinds.Refusal(p); refused != nil {
			r.log.Info("profile not used", "profile", p.Name, "reason", refused.Reason, "message", refused.Message)
		}
	}
}
