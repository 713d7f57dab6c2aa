package cache

import (
	"cmp"
	"iter"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Policies, their resource and the permissions for it are read by one definition per
// kind. The API server accepts the names of only one definition of a kind, but it also
// serves a second one if the status of that says so, which every client with write
// access to the status can set.

// activeDefinitions returns the definition that is used for each kind.
func activeDefinitions(defined iter.Seq[*definition]) map[api.PolicyKind]*definition {
	out := make(map[api.PolicyKind]*definition)
	for d := range defined {
		if other := out[d.groupKind]; other == nil || d.precedes(other) {
			out[d.groupKind] = d
		}
	}
	return out
}

// precedes reports whether d is used instead of another definition of its kind: a
// served one first, then the older one. Clients that can write the status cannot choose
// the creation time.
func (d *definition) precedes(other *definition) bool {
	if d.served() != other.served() {
		return d.served()
	}
	return cmp.Or(cmp.Compare(d.created, other.created), strings.Compare(d.name, other.name)) < 0
}

func createdAt(crd *apiextensionsv1.CustomResourceDefinition) int64 {
	if crd.CreationTimestamp.IsZero() {
		return merge.Newest
	}
	return crd.CreationTimestamp.Unix()
}

// checkReserved returns an error if the kind of the definition is read by a definition
// of another name: one of Gateway API, PolicyProfile or a constraint.
func checkReserved(d *definition) error {
	owner := ""
	if b := findGatewayKind(func(b *builtin) bool { return b.kind == d.groupKind }); b != nil {
		owner = b.definition()
	}
	for i := range constraintKinds {
		if k := &constraintKinds[i]; k.kind == d.groupKind {
			owner = k.definition()
		}
	}
	if d.groupKind == policykind.KindProfile {
		owner = profilesDefinition
	}
	if owner == "" || owner == d.name {
		return nil
	}
	return &policykind.DefinedError{Kind: d.groupKind, By: owner}
}

// checkDuplicate returns an error if the written definition would be a second one of a
// kind that is read. An existing duplicate may be edited, but not become served.
func (c kindConfig) checkDuplicate(before, after snapshot.Object) error {
	d, ok := after.(*policykind.Definition)
	if !ok {
		return nil
	}
	written := parseDefinition(&d.CustomResourceDefinition)
	if old, ok := before.(*policykind.Definition); ok && old.Defines() == written.groupKind &&
		(established(&old.CustomResourceDefinition) || !established(&d.CustomResourceDefinition)) {
		return nil
	}
	if err := checkReserved(written); err != nil {
		return err
	}
	if first, read := c.policies()[written.groupKind]; read && first.definition != written.name {
		return &policykind.DefinedError{Kind: written.groupKind, By: first.definition}
	}
	return nil
}
