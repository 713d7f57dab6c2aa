package policykind

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Source tells where a kind's profile came from.
type Source string

// The sources of profiles.
const (
	Builtin Source = "built-in"
	Label   Source = "label" // a guess by the label on the CRD
)

// Kind is a compiled profile.
type Kind struct {
	Profile
	Source Source

	patterns   []pattern
	whole      []pattern
	strategies []merge.Strategy
	leaves     bool // the rules are the leaves
}

// pattern is the segments of an address, * for any.
type pattern []string

// Compile checks a profile and makes a kind of it.
func Compile(p Profile, source Source) (*Kind, error) {
	k := &Kind{Profile: p, Source: source}
	if p.Kind == "" {
		return nil, fmt.Errorf("profile of group %q: kind is missing", p.Group)
	}
	if err := k.compileStrategies(); err != nil {
		return nil, err
	}
	switch {
	case len(p.Targets.Fields) == 0:
		return nil, k.errorf("targets.fields is empty: name the field of spec that holds the target")
	case p.Class != Inherited && p.Class != Direct:
		return nil, k.errorf("class %q is none of %s, %s", p.Class, Inherited, Direct)
	case p.SameTarget == "" && p.Class == Inherited:
		k.SameTarget = Hierarchical
	case p.SameTarget == "":
		k.SameTarget = None
	case p.SameTarget != Hierarchical && p.SameTarget != None:
		return nil, k.errorf("sameTarget %q is none of %s, %s", p.SameTarget, Hierarchical, None)
	}
	k.patterns, k.whole = compile(p.Rules), compile(p.Whole)
	return k, nil
}

func (k *Kind) compileStrategies() error {
	for _, text := range k.Blocks.Strategy.Allowed {
		s, ok := merge.ParseStrategy(text)
		if !ok {
			return k.errorf("strategy %q is none of atomic, merge, patch", text)
		}
		k.strategies = append(k.strategies, s)
	}
	if len(k.strategies) == 0 {
		k.strategies = []merge.Strategy{merge.Atomic}
	}
	k.leaves = slices.Contains(k.strategies, merge.Patch)
	return nil
}

func (k *Kind) errorf(format string, args ...any) error {
	return fmt.Errorf("profile of %s: %w", k.Ref(), fmt.Errorf(format, args...))
}

func compile(addresses []string) []pattern {
	out := make([]pattern, len(addresses))
	for i, a := range addresses {
		out[i] = strings.Split(a, ".")
	}
	return out
}

// Ref names the kind.
func (k *Kind) Ref() api.PolicyKind { return api.PolicyKind{Group: k.Group, Kind: k.Kind} }

// Action returns what happens for a reason: the profile's word, else def.
func (k *Kind) Action(code api.ReasonCode, def Action) Action {
	if a, ok := k.Actions[code]; ok {
		return a
	}
	return def
}

// MayTarget reports whether the profile lists a target kind. A profile that
// lists none leaves it open.
func (k *Kind) MayTarget(target api.PolicyKind) bool {
	return len(k.Targets.Kinds) == 0 || slices.Contains(k.Targets.Kinds, target)
}

//go:embed profiles/*.yaml
var builtin embed.FS

// BuiltinKinds returns the kinds whose profiles come with Overrule.
func BuiltinKinds() ([]*Kind, error) {
	files, err := builtin.ReadDir("profiles")
	if err != nil {
		return nil, fmt.Errorf("list built-in profiles: %w", err)
	}
	var out []*Kind
	for _, f := range files {
		k, err := builtinKind("profiles/" + f.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

func builtinKind(file string) (*Kind, error) {
	data, err := builtin.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read built-in profile %s: %w", file, err)
	}
	var p Profile
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		return nil, fmt.Errorf("read built-in profile %s: %w", file, err)
	}
	return Compile(p, Builtin)
}
