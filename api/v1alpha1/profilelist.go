package v1alpha1

// KindProfileList is the kind of ProfileList.
const KindProfileList = "ProfileList"

// ProfileList is the output of the command profiles.
type ProfileList struct {
	TypeMeta `json:",inline"`
	Items    []ProfileInForce `json:"items"`
}

// ProfileInForce is the profile in effect for a policy kind.
type ProfileInForce struct {
	PolicyKind PolicyKind `json:"policyKind"`
	// Source is "built-in", "cluster" for a PolicyProfile, or "label" for a profile
	// derived from the label of the kind's CustomResourceDefinition.
	Source string `json:"source"`
	// Profile is the name of the PolicyProfile if the source is cluster.
	Profile string `json:"profile,omitempty"`
	// Installed is true if the cluster, or the manifests, have a definition of the
	// kind.
	Installed bool `json:"installed"`
	// Spec is the profile.
	Spec PolicyProfileSpec `json:"spec"`
	// Refused are other PolicyProfiles of the kind, which are not in effect.
	Refused []RefusedProfile `json:"refused,omitempty"`
}

// RefusedProfile is a PolicyProfile that is not in effect.
type RefusedProfile struct {
	Name string `json:"name"`
	// Reason is Invalid or Conflicted.
	Reason  State  `json:"reason"`
	Message string `json:"message"`
}
