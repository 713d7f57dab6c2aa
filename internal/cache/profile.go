package cache

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// decodeProfile converts a PolicyProfile. Its spec is misread if it has unknown or invalid fields.
func decodeProfile(obj runtime.Object) (snapshot.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, u)
	}
	p := &policykind.Profile{}
	head := maps.Clone(u.Object)
	delete(head, "spec")
	convert := runtime.DefaultUnstructuredConverter
	if err := convert.FromUnstructured(head, &p.PolicyProfile); err != nil {
		return nil, fmt.Errorf("read the PolicyProfile: %w", err)
	}
	p.ManagedFields = nil
	var body struct {
		Spec api.PolicyProfileSpec `json:"spec"`
	}
	if err := convert.FromUnstructuredWithValidation(map[string]any{"spec": u.Object["spec"]}, &body, true); err != nil {
		p.Misread = fmt.Errorf("%w; correct it, or update Overrule if it is older than the CustomResourceDefinition", err)
	}
	p.Spec = body.Spec
	return p, nil
}

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
