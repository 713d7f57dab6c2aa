package v1alpha1

// KindProfileList is the kind of ProfileList.
const KindProfileList = "ProfileList"

// ProfileList is what `profiles` answers.
type ProfileList struct {
	TypeMeta `json:",inline"`
	Items    []ProfileInForce `json:"items"`
}

// ProfileInForce is a policy kind that is read, and why so.
type ProfileInForce struct {
	PolicyKind PolicyKind `json:"policyKind"`
	// Source is "built-in", "cluster" or "label", a guess by the label on the
	// kind's CustomResourceDefinition.
	Source string `json:"source"`
	// Profile is the name of the PolicyProfile, where the source is cluster.
	Profile string `json:"profile,omitempty"`
	// Installed tells that the kind is defined where one looked.
	Installed bool `json:"installed"`
	// Spec is the profile.
	Spec PolicyProfileSpec `json:"spec"`
	// Refused are other profiles of the kind that are not in force, and why.
	Refused []RefusedProfile `json:"refused,omitempty"`
}

// RefusedProfile is a PolicyProfile that is not in force.
type RefusedProfile struct {
	Name string `json:"name"`
	// Reason is Invalid or Conflicted.
	Reason  State  `json:"reason"`
	Message string `json:"message"`
}
