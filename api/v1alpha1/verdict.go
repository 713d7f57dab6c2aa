package v1alpha1

import "slices"

// VerdictList is the output of the command check.
type VerdictList struct {
	TypeMeta `json:",inline"`
	Items    []Verdict `json:"items"`
}

// Verdict is the admission decision on one change.
type Verdict struct {
	Object    Ref    `json:"object"`
	Operation string `json:"operation"`
	Allowed   bool   `json:"allowed"`
	// Reasons are the findings that deny the change. With the enforcement warn or
	// audit they are present although Allowed is true.
	Reasons []Reason `json:"reasons,omitempty"`
	// Warnings are the findings that do not deny the change.
	Warnings []Reason `json:"warnings,omitempty"`
	Changes  Changes  `json:"changes"`
	// Lost are the rules that paths lose: in force before the change, and neither they nor
	// another value of the same rules after it. Those that protect come first, then what most
	// paths lose.
	Lost []LostRules `json:"lost,omitempty"`
	// Gained are the rules of policies that a route gets which is created.
	Gained []GainedRules `json:"gained,omitempty"`
	// Moved names the rules that requests lose which move to another route, rule or listener, those that protect
	// first. Both paths may keep their rules.
	Moved []string `json:"moved,omitempty"`
	// DryRun is true if the API server evaluated the change in a dry run: Changes are not
	// counted, Reasons have no rule and no policy, and Warnings their message alone.
	DryRun bool `json:"dryRun,omitempty"`
}

// MovedText says what requests lose that move to another route, rule or listener, "" for nothing.
func (v Verdict) MovedText() string {
	if len(v.Moved) > 0 {
		return "requests that move to another route, rule or listener lose " + NamesText(v.Moved)
	}
	if slices.ContainsFunc(slices.Concat(v.Reasons, v.Warnings), func(r Reason) bool { return r.Code == ReasonRulesLost && r.Request != "" }) {
		return "requests that move to another route, rule or listener get other rules"
	}
	return ""
}

// Reason is one finding.
type Reason struct {
	Code ReasonCode `json:"code"`
	Rule string     `json:"rule,omitempty"`
	// Policy is the other policy: the one that overrides, has the same target, or
	// loses its effect.
	Policy *Ref `json:"policy,omitempty"`
	// Field is the field of the written object that it is about, such as
	// spec.targetRefs[0]. It is absent if it is about none alone.
	Field string `json:"field,omitempty"`
	// Whole is set if one policy replaces another as a whole. There is then a finding
	// for each rule, and one without a Rule for all of them.
	Whole bool `json:"whole,omitempty"`
	// Request is a request that another rule serves after the change, without the
	// override, such as "GET http://shop.example.com/cart with X-Team: a".
	Request string `json:"request,omitempty"`
	// Message says what is wrong, where, and what to do.
	Message string `json:"message"`
	// Repeats is set if it says no more than the changes of the verdict, or what is gained.
	Repeats bool `json:"-"`
	// CountsPaths is set if the message is a number of paths.
	CountsPaths bool `json:"-"`
}

// CodeWarning is the code of a warning of the API server.
const CodeWarning ReasonCode = "Warning"

// Changes is the number of effective policies that a change affects.
type Changes struct {
	// Paths is the number of paths whose effective policy of any kind differs.
	Paths int `json:"paths"`
	// Namespaces is the number of namespaces of the routes of these paths.
	Namespaces int `json:"namespaces"`
	// Unreached is the number of these paths that no request reaches: they lose and get
	// nothing.
	Unreached int `json:"unreached,omitempty"`
}
