package policykind

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

// KindProfile is the kind of PolicyProfiles.
var KindProfile = api.PolicyKind{Group: api.Group, Kind: api.KindPolicyProfile}

// Profile is a PolicyProfile in an admission request. It is not part of a snapshot.
type Profile struct{ api.PolicyProfile }

// Ref returns the reference of the profile.
func (p *Profile) Ref() api.Ref {
	return api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: p.Name}
}

//go:embed profiles/*.yaml
var builtin embed.FS

// BuiltinKinds returns the kinds of the built-in profiles, sorted. They are compiled
// once: kinds are immutable.
func BuiltinKinds() ([]*Kind, error) {
	kinds, err := builtinKinds()
	return slices.Clone(kinds), err
}

var builtinKinds = sync.OnceValues(readBuiltin)

func readBuiltin() ([]*Kind, error) {
	files, err := fs.Glob(builtin, "profiles/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list built-in profiles: %w", err)
	}
	var out []*Kind
	for _, file := range files {
		data, err := builtin.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read built-in profile %s: %w", file, err)
		}
		var list api.PolicyProfileList
		if err := yaml.UnmarshalStrict(data, &list); err != nil {
			return nil, fmt.Errorf("read built-in profile %s: %w", file, err)
		}
		for i := range list.Items {
			k, err := Compile(list.Items[i].Spec, Builtin)
			if err != nil {
				return nil, fmt.Errorf("read built-in profile %s: %w", file, err)
			}
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *Kind) int { return api.ComparePolicyKinds(a.Ref(), b.Ref()) })
	return out, nil
}

// Profiles resolves the profile in force for each policy kind: the oldest valid
// PolicyProfile of the cluster, else the built-in profile, else one derived from the
// label on the kind's CustomResourceDefinition. It is not safe for concurrent use.
type Profiles struct {
	builtin map[api.PolicyKind]*Kind
	cluster map[string]clusterProfile // by name
}

// clusterProfile is a compiled PolicyProfile.
type clusterProfile struct {
	name       string
	created    int64
	policyKind api.PolicyKind
	kind       *Kind // nil if it is invalid
	err        error
	// deleting is set if it is being deleted, or will be with its owner.
	deleting bool
}

// NewProfiles returns Profiles with the built-in ones.
func NewProfiles() (*Profiles, error) {
	kinds, err := BuiltinKinds()
	if err != nil {
		return nil, err
	}
	p := &Profiles{builtin: make(map[api.PolicyKind]*Kind, len(kinds)), cluster: make(map[string]clusterProfile)}
	for _, k := range kinds {
		p.builtin[k.Ref()] = k
	}
	return p, nil
}

// Clone returns a copy that can be changed.
func (p *Profiles) Clone() *Profiles {
	return &Profiles{builtin: p.builtin, cluster: maps.Clone(p.cluster)}
}

// Put adds or replaces a PolicyProfile of the cluster. created, in seconds since
// 1970, is used if the object has no creation time. The error is that of Compile; an
// invalid profile is listed by Refused.
func (p *Profiles) Put(o *api.PolicyProfile, created int64) error {
	if !o.CreationTimestamp.IsZero() {
		created = o.CreationTimestamp.Unix()
	}
	c := clusterProfile{
		name: o.Name, created: created, policyKind: api.PolicyKind{Group: o.Spec.Group, Kind: o.Spec.Kind},
		deleting: o.DeletionTimestamp != nil || len(o.OwnerReferences) > 0,
	}
	c.kind, c.err = Compile(o.Spec, Cluster)
	if c.kind != nil {
		c.kind.Name = o.Name
	}
	p.cluster[o.Name] = c
	return c.err
}

// Remove removes a PolicyProfile of the cluster.
func (p *Profiles) Remove(name string) { delete(p.cluster, name) }

// RemoveDeleting removes the PolicyProfiles that are being deleted, or will be with
// an owner, except the named one.
func (p *Profiles) RemoveDeleting(except string) {
	maps.DeleteFunc(p.cluster, func(name string, c clusterProfile) bool { return c.deleting && name != except })
}

// candidates returns the PolicyProfiles of a kind, the oldest first.
func (p *Profiles) candidates(ref api.PolicyKind) []clusterProfile {
	var out []clusterProfile
	for _, c := range p.cluster {
		if c.policyKind == ref {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b clusterProfile) int {
		return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.name, b.name))
	})
	return out
}

// Of returns the kind with its PolicyProfile or built-in profile, nil if it has
// neither.
func (p *Profiles) Of(ref api.PolicyKind) *Kind {
	for _, c := range p.candidates(ref) {
		if c.kind != nil {
			return c.kind
		}
	}
	return p.builtin[ref]
}

// Defined returns the kind that a CustomResourceDefinition defines: the one that Of
// returns, else one derived from its label; nil if it is not a policy kind.
func (p *Profiles) Defined(crd *apiextensionsv1.CustomResourceDefinition) (*Kind, error) {
	if k := p.Of(api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}); k != nil {
		return k, nil
	}
	spec, ok := FromLabel(crd)
	if !ok {
		return nil, nil
	}
	k, err := Compile(spec, Label)
	if err != nil {
		return nil, fmt.Errorf("derive a profile from label %s: %w", LabelPolicy, err)
	}
	return k, nil
}

// Known returns the kinds that have a PolicyProfile or a built-in profile, sorted.
func (p *Profiles) Known() []*Kind {
	refs := make(map[api.PolicyKind]bool)
	for ref := range p.builtin {
		refs[ref] = true
	}
	for _, c := range p.cluster {
		refs[c.policyKind] = true
	}
	var out []*Kind
	for _, ref := range slices.SortedFunc(maps.Keys(refs), api.ComparePolicyKinds) {
		if k := p.Of(ref); k != nil {
			out = append(out, k)
		}
	}
	return out
}

// Refused returns the PolicyProfiles of a kind that are not in force, the oldest
// first.
func (p *Profiles) Refused(ref api.PolicyKind) []api.RefusedProfile {
	var out []api.RefusedProfile
	inForce := ""
	for _, c := range p.candidates(ref) {
		switch {
		case c.err != nil:
			out = append(out, api.RefusedProfile{Name: c.name, Reason: api.Invalid, Message: c.err.Error()})
		case inForce != "":
			out = append(out, api.RefusedProfile{
				Name: c.name, Reason: api.Conflicted,
				Message: fmt.Sprintf("PolicyProfile %s, which is older, is in force for %s: delete one of the two", inForce, ref),
			})
		default:
			inForce = c.name
		}
	}
	return out
}

// Status returns why a PolicyProfile is refused, nil if it is in force. ok is false
// if it does not exist.
func (p *Profiles) Status(name string) (refused *api.RefusedProfile, ok bool) {
	c, ok := p.cluster[name]
	if !ok {
		return nil, false
	}
	for _, r := range p.Refused(c.policyKind) {
		if r.Name == name {
			return &r, true
		}
	}
	return nil, true
}

// InForce returns the kind as the command `profiles` prints it.
func (p *Profiles) InForce(k *Kind, installed bool) api.ProfileInForce {
	return api.ProfileInForce{
		PolicyKind: k.Ref(), Source: string(k.Source), Profile: k.Name, Installed: installed,
		Spec: k.PolicyProfileSpec, Refused: p.Refused(k.Ref()),
	}
}
