package cache

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// profile is a PolicyProfile of the cluster.
type profile struct {
	api.PolicyProfile
	// err is why its spec cannot be read.
	err error
}

// decodeProfile converts a PolicyProfile. A spec with unknown or invalid fields is not
// used at all: without them, it may mean something else.
func decodeProfile(obj runtime.Object) (*profile, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, u)
	}
	p := &profile{}
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
		p.err = fmt.Errorf("%w; correct it, or update Overrule if it is older than the CustomResourceDefinition", err)
	}
	p.Spec = body.Spec
	return p, nil
}

// addTo adds the profile to known, or replaces it there.
func (p *profile) addTo(profiles *policykind.Profiles) {
	if p.err != nil {
		profiles.Remove(p.Name)
		return
	}
	_ = profiles.Put(&p.PolicyProfile, merge.Newest) // refusal returns the error
}

// refusal returns why a profile is not in force, nil if it is.
func (p *profile) refusal(profiles *policykind.Profiles) *api.RefusedProfile {
	if p.err != nil {
		return &api.RefusedProfile{Name: p.Name, Reason: api.Invalid, Message: p.err.Error()}
	}
	r, _ := profiles.Status(p.Name)
	return r
}

// problem returns what makes a profile invalid in itself, if anything does.
func (p *profile) problem(profiles *policykind.Profiles) (Problem, bool) {
	r := p.refusal(profiles)
	if r == nil || r.Reason != api.Invalid {
		return Problem{}, false
	}
	return Problem{profilesDefinition + "/" + p.Name, fmt.Errorf("profile not used: %s", r.Message)}, true
}

// inForce returns the kinds with a profile, and the kinds of the definitions that have
// only a label.
func inForce(profiles *policykind.Profiles, clusterProfiles map[string]*profile, definitions []*definition) []api.ProfileInForce {
	installed := make(map[api.PolicyKind]bool)
	kinds := profiles.Known()
	for _, d := range activeDefinitions(slices.Values(definitions)) {
		k, _ := d.policyKind(profiles)
		if installed[d.groupKind] = d.served(); k != nil && k.Source == policykind.Label {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b *policykind.Kind) int { return api.ComparePolicyKinds(a.Ref(), b.Ref()) })
	out := make([]api.ProfileInForce, 0, len(kinds))
	for _, k := range kinds {
		f := profiles.InForce(k, installed[k.Ref()])
		for _, name := range slices.Sorted(maps.Keys(clusterProfiles)) {
			if p := clusterProfiles[name]; p.err != nil && p.Spec.Group == k.Group && p.Spec.Kind == k.Kind {
				f.Refused = append(f.Refused, *p.refusal(profiles))
			}
		}
		out = append(out, f)
	}
	return out
}

// profileTarget is the target of the reflector of PolicyProfiles.
type profileTarget struct {
	*registry
	kind *watchedKind
}

func (t profileTarget) put(p *profile) {
	t.update(func() { t.putProfile(p) })
}

func (t profileTarget) remove(name cache.ObjectName) {
	t.update(func() { t.removeProfile(name.Name) })
}

func (t profileTarget) replace(all []*profile) {
	t.update(func() {
		old := slices.Collect(maps.Keys(t.clusterProfiles))
		for _, p := range all {
			t.putProfile(p)
		}
		for _, name := range old {
			if !slices.ContainsFunc(all, func(p *profile) bool { return p.Name == name }) {
				t.removeProfile(name)
			}
		}
		t.markListed(t.kind)
	})
}

// update runs act unless the reflector was stopped, and then reconciles the kinds with
// the profiles.
func (t profileTarget) update(act func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[profilesDefinition] != t.kind {
		return
	}
	act()
	t.reconcile()
	signal(t.statusChanged)
}

func (r *registry) putProfile(p *profile) {
	old := r.clusterProfiles[p.Name]
	r.clusterProfiles[p.Name] = p
	p.addTo(r.profiles)
	if old != nil && old.UID == p.UID && old.Generation == p.Generation {
		return // only its status changed
	}
	if refused := p.refusal(r.profiles); refused != nil {
		r.log.Info("profile not used", "profile", p.Name, "reason", refused.Reason, "message", refused.Message)
	}
}

func (r *registry) removeProfile(name string) {
	delete(r.clusterProfiles, name)
	r.profiles.Remove(name)
}

func (r *registry) removeProfiles() {
	for name := range r.clusterProfiles {
		r.removeProfile(name)
	}
	signal(r.statusChanged)
}

// ProfileStatus is the state of a PolicyProfile.
type ProfileStatus struct {
	Name       string
	UID        types.UID
	Generation int64
	// Refused is why it is not in force, nil if it is.
	Refused *api.RefusedProfile
	// Conditions are the current conditions of the status. They must not be modified.
	Conditions []metav1.Condition
}

func (r *registry) profileStatuses() []ProfileStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]ProfileStatus, 0, len(r.clusterProfiles))
	for _, p := range r.clusterProfiles {
		out = append(out, ProfileStatus{
			Name: p.Name, UID: p.UID, Generation: p.Generation,
			Refused: p.refusal(r.profiles), Conditions: p.Status.Conditions,
		})
	}
	slices.SortFunc(out, func(a, b ProfileStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (r *registry) profilesInForce() []api.ProfileInForce {
	r.mu.Lock()
	defer r.mu.Unlock()
	var definitions []*definition
	for _, d := range r.definitions {
		definitions = append(definitions, d)
	}
	return inForce(r.profiles, r.clusterProfiles, definitions)
}

func (r *registry) profileProblems() []Problem {
	var out []Problem
	for _, p := range r.clusterProfiles {
		if problem, ok := p.problem(r.profiles); ok {
			out = append(out, problem)
		}
	}
	return out
}
