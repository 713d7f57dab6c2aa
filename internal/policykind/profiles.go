package policykind

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

// KindProfile is the kind of PolicyProfiles.
var KindProfile = api.PolicyKind{Group: api.Group, Kind: api.KindPolicyProfile}

// Profile is a PolicyProfile.
type Profile struct {
	api.PolicyProfile
	// Created, in seconds since 1970, counts if the object has no creation time: it is 0 for one
	// that is being created.
	Created int64
	// Misread is why its spec cannot be read. It is not used at all then: without some of its
	// fields, it may mean something else.
	Misread error
}

// Ref returns the reference of the profile.
func (p *Profile) Ref() api.Ref {
	return api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: p.Name}
}

// Compile compiles the profile.
func (p *Profile) Compile() (*Kind, error) {
	if p.Misread != nil {
		return nil, p.Misread
	}
	k, err := Compile(p.Spec, Cluster)
	if k != nil {
		k.Name = p.Name
	}
	return k, err
}

//go:embed profiles/*.yaml
var builtin embed.FS

// BuiltinKinds returns the kinds of the built-in profiles, sorted. They are compiled
// once: kinds are immutable.
func BuiltinKinds() []*Kind { return slices.Clone(builtinKinds()) }

// BuiltinKind returns the kind of a built-in profile, nil if there is none.
func BuiltinKind(ref api.PolicyKind) *Kind {
	all := builtinKinds()
	i, ok := slices.BinarySearchFunc(all, ref, func(k *Kind, ref api.PolicyKind) int { return api.ComparePolicyKinds(k.Ref(), ref) })
	if !ok {
		return nil
	}
	return all[i]
}

var builtinKinds = sync.OnceValue(func() []*Kind {
	kinds, err := readBuiltin()
	if err != nil {
		panic(err) //nolint:forbidigo // they are part of the program, and tests read them
	}
	return kinds
})

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
