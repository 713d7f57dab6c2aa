package guard

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// Finding is one thing to deny for, or to tell.
type Finding struct {
	Code   api.ReasonCode
	Action api.Action
	// Rule is the key of the rule that it is about, if one.
	Rule string
	// Policy is the other policy: the one that overrides, holds the target or
	// loses its effect.
	Policy *api.Ref
	// What happened, and what to do about it.
	What, Advice string
	// Short is What in fewer words, for a line of a terminal; empty if it has
	// no more than it needs.
	Short string
	// Whole marks what is said twice: of each rule of a policy that another one
	// replaces as a whole, and, without a Rule, of all of them. A reader is shown
	// the one for all, a program both.
	Whole bool
	// Unbound marks what is said of a constraint that does not bind the write: it comes
	// last, since its author is another one than the writer's.
	Unbound bool
}

// OmitRepeated leaves out what is said of each rule where it is said of all of them,
// too.
func OmitRepeated(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Whole && f.Rule != "" })
}

// Message returns the whole message.
func (f Finding) Message() string {
	if f.Advice == "" {
		return f.What
	}
	return f.What + "; " + f.Advice
}

// Reason returns the finding as the JSON contract shows it.
func (f Finding) Reason() api.Reason {
	return api.Reason{Code: f.Code, Rule: f.Rule, Policy: f.Policy, Whole: f.Whole, Message: f.Message()}
}

// Decision is what the guard says of a change.
type Decision struct {
	Change Change
	// Denials, Warnings and Audits are the findings by what is done about
	// them, each sorted.
	Denials, Warnings, Audits []Finding
	Changes                   api.Changes
	// After is the view as it would be after the change.
	After *snapshot.View
	// Cut tells that not all paths were looked at: it would have been too much.
	Cut bool
}

// Denied reports whether something speaks against the change.
func (j *Decision) Denied() bool { return len(j.Denials) > 0 }

// Enforcement is what is done about a denial.
type Enforcement string

// The enforcements.
const (
	// EnforceDeny denies.
	EnforceDeny Enforcement = "deny"
	// EnforceWarn allows everything, and tells what would have been denied.
	EnforceWarn Enforcement = "warn"
	// EnforceAudit allows everything and tells the writer nothing: what would
	// have been denied stands in the audit log, in metrics and in Events.
	EnforceAudit Enforcement = "audit"
)

// Enforcements are all of them.
var Enforcements = []Enforcement{EnforceDeny, EnforceWarn, EnforceAudit}

// Denies reports whether a denial denies. An enforcement that is not set does.
func (e Enforcement) Denies() bool { return e != EnforceWarn && e != EnforceAudit }

// Verdict returns the judgement as the JSON contract shows it.
func (j *Decision) Verdict(e Enforcement) api.Verdict {
	return api.Verdict{
		Object: j.Change.Object().Ref(), Operation: string(j.Change.Operation),
		Allowed: !j.Denied() || !e.Denies(),
		Reasons: reasons(j.Denials), Warnings: reasons(j.Warnings),
		Changes: j.Changes,
	}
}

func reasons(findings []Finding) []api.Reason {
	var out []api.Reason
	for _, f := range findings {
		out = append(out, f.Reason())
	}
	return out
}

// findings collects findings, each once, by all that they say: a write can
// bring thousands. What is said on two paths, with two actions, has the
// stricter one.
type findings map[said]Finding

type said struct {
	Finding
	policy api.Ref
}

func (s *findings) add(f Finding) {
	at := said{Finding: f}
	at.Action = ""
	if f.Policy != nil {
		at.policy, at.Policy = *f.Policy, nil
	}
	if *s == nil {
		*s = make(findings)
	}
	if old, ok := (*s)[at]; !ok || strictness(f.Action) > strictness(old.Action) {
		(*s)[at] = f
	}
}

func strictness(a api.Action) int {
	return slices.Index([]api.Action{api.Audit, api.Warn, api.Deny}, a)
}

// by returns the findings of an action, sorted.
func (s findings) by(a api.Action) []Finding {
	var out []Finding
	for _, f := range s {
		if f.Action == a {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// order is the order in which findings are told: what is wrong with the object
// itself, how far it reaches, and then what it costs others, which may be long.
var order = []api.ReasonCode{
	api.ReasonInvalid, api.ReasonTooMuch, api.ReasonTargetNotFound, api.ReasonNoPath, api.ReasonConflicted,
	api.ReasonTriggerUnmatched, api.ReasonUnsetOverride, api.ReasonConstraintViolated,
	api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened,
	api.ReasonRequirementUnmet, api.ReasonEffectiveInvalid, api.ReasonBlastRadius,
	api.ReasonLimitShadowed, api.ReasonLimitWidened,
	api.ReasonConditionSkipped, api.ReasonNotRead, api.ReasonOverridden,
}

func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(btoi(a.Unbound), btoi(b.Unbound)),
		cmp.Compare(slices.Index(order, a.Code), slices.Index(order, b.Code)),
		cmp.Compare(btoi(a.Rule == ""), btoi(b.Rule == "")), // a sum comes last
		strings.Compare(a.Rule, b.Rule),
		comparePolicies(a.Policy, b.Policy),
		strings.Compare(a.What, b.What),
		strings.Compare(a.Advice, b.Advice),
	)
}

func comparePolicies(a, b *api.Ref) int {
	var x, y api.Ref
	if a != nil {
		x = *a
	}
	if b != nil {
		y = *b
	}
	return api.CompareRefs(x, y)
}
