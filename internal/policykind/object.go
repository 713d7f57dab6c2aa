package policykind

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// KindProfile is the kind of PolicyProfiles.
var KindProfile = api.PolicyKind{Group: api.Group, Kind: api.KindPolicyProfile}

// Profile is a PolicyProfile that is being written. It takes no part in a view.
type Profile struct{ api.PolicyProfile }

// Ref names the profile.
func (p *Profile) Ref() api.Ref {
	return api.Ref{Group: KindProfile.Group, Kind: KindProfile.Kind, Name: p.Name}
}
