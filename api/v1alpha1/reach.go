package v1alpha1

// KindReachList is the kind of ReachList.
const KindReachList = "ReachList"

// ReachList is what `reach` answers: where policies hold.
type ReachList struct {
	TypeMeta `json:",inline"`
	Items    []Reach `json:"items"`
}

// Reach tells where a policy, or one rule of it, holds: the objects on whose
// paths a rule of it survives (SEMANTICS section 6).
type Reach struct {
	Policy Ref `json:"policy"`
	// Rule is the one that was asked for.
	Rule string `json:"rule,omitempty"`
	// Rules that survive on some of the paths.
	Rules []string `json:"rules"`
	// Gateways, Routes and Backends that are affected, and Listeners by their
	// gateway or listener set. Services are the parents of mesh paths.
	Gateways  []Ref         `json:"gateways"`
	Listeners []PathElement `json:"listeners,omitempty"`
	Services  []Ref         `json:"services,omitempty"`
	Routes    []Ref         `json:"routes"`
	Backends  []Ref         `json:"backends,omitempty"`
	// Paths counts the paths where it holds, of all that the policy is on.
	Paths ReachPaths `json:"paths"`
}

// ReachPaths counts paths.
type ReachPaths struct {
	Holding int `json:"holding"`
	Total   int `json:"total"`
}
