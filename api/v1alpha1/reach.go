package v1alpha1

// KindReachList is the kind of ReachList.
const KindReachList = "ReachList"

// ReachList is the output of the command reach.
type ReachList struct {
	TypeMeta `json:",inline"`
	Items    []Reach `json:"items"`
}

// Reach is where a policy, or one rule of it, has an effect: the objects on whose
// paths a rule of it is in effect (docs/semantics.md, Policy states).
type Reach struct {
	Policy Ref `json:"policy"`
	// Rule is the RULE argument of the command.
	Rule string `json:"rule,omitempty"`
	// Rules are in effect on at least one path.
	Rules []string `json:"rules"`
	// Gateways, Listeners, Services, Routes and Backends are the affected objects.
	// Listeners are listed by their Gateway or ListenerSet. Services are the parents
	// of mesh paths.
	Gateways  []Ref         `json:"gateways"`
	Listeners []PathElement `json:"listeners,omitempty"`
	Services  []Ref         `json:"services,omitempty"`
	Routes    []Ref         `json:"routes"`
	Backends  []Ref         `json:"backends,omitempty"`
	// Paths counts the paths on which it has an effect, of all that the policy is on.
	Paths ReachPaths `json:"paths"`
}

// ReachPaths counts paths.
type ReachPaths struct {
	Holding int `json:"holding"`
	Total   int `json:"total"`
}
