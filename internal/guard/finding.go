package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Finding is one reason to deny a write, or one warning.
type Finding struct {
	Code   api.ReasonCode
	Action api.Action
	// Rule is the key of the rule that it is about, if one.
	Rule string
	// Policy is the other policy: the one that overrides, holds the target or
	// loses its effect; the zero Ref for none.
	Policy api.Ref
	// Field is the path of the field of the written object that it is about, such as
	// spec.targetRefs[0], "" if it is about none alone.
	Field string
	// What happened, and what to do about it.
	What, Advice string
	// Request is a request that loses an override or rules, or no longer reaches its route,
	// since ServedBy serves it after the write.
	Request, ServedBy string
	// Short is What in fewer words, for a line of a terminal; empty if it has
	// no more than it needs.
	Short string
	// ReplacedAsWhole marks what is said twice: of each rule of a policy that another one
	// replaces as a whole, and, without a Rule, of all of them. A reader is shown
	// the one for all, a program both.
	ReplacedAsWhole bool
	// NotBinding marks what is said of a constraint that does not bind the write: it comes
	// last, since its author is another one than the writer's.
	NotBinding bool
	// Repeats marks what says no more than the number of paths that the decision has, or
	// what they gain.
	Repeats bool
	// rank orders the findings of one code, the lowest first.
	rank int
	// until is when a grace period ends, the zero time for none.
	until time.Time
	// unread is why policies of a kind are not read, if that is the cause.
	unread string
}

// OmitRepeated leaves out what is said of each rule where it is said of all of them,
// too.
func OmitRepeated(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.ReplacedAsWhole && f.Rule != "" })
}

// Message returns the whole message.
func (f Finding) Message() string {
	text := f.What
	if f.Request != "" {
		text += fmt.Sprintf("; for example, %s would be served by %s", f.Request, f.ServedBy)
	}
	if f.Advice == "" {
		return text
	}
	return text + "; " + f.Advice
}

// Reason returns the finding as the JSON contract shows it.
func (f Finding) Reason() api.Reason {
	return api.Reason{
		Code: f.Code, Rule: f.Rule, Policy: optional(f.Policy), Field: f.Field, Whole: f.ReplacedAsWhole, Request: f.Request, Message: f.Message(),
		Repeats: f.Repeats, CountsPaths: f.Code == api.ReasonBlastRadius && f.Short != "",
	}
}

// optional returns a reference, nil if it names nothing.
func optional(ref api.Ref) *api.Ref {
	if ref == (api.Ref{}) {
		return nil
	}
	return &ref
}

// findings collects findings, each once, by all that they say: a write can
// bring thousands. What is said on two paths, with two actions, has the
// stricter one.
type findings map[Finding]Finding

func (fs *findings) add(f Finding) {
	at := f
	at.Action = ""
	if old, ok := (*fs)[at]; !ok || strictness(f.Action) > strictness(old.Action) {
		put(fs, at, f)
	}
}

// any reports whether a finding meets a condition.
func (fs findings) any(met func(*Finding) bool) bool {
	for _, f := range fs {
		if met(&f) {
			return true
		}
	}
	return false
}

func strictness(a api.Action) int {
	return slices.Index([]api.Action{api.Audit, api.Warn, api.Deny}, a)
}

// withAction returns the findings of an action, sorted.
func (fs findings) withAction(a api.Action) []Finding {
	var out []Finding
	for _, f := range fs {
		if f.Action == a {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// reasonOrder is the order of findings: what is wrong with the object itself, what it costs
// others, how many paths change, and what is only said.
var reasonOrder = []api.ReasonCode{
	api.ReasonSchemaInvalid, api.ReasonUnknownField, api.ReasonInvalid, api.ReasonTooMuch, api.ReasonRulesLost, api.ReasonTargetNotFound, api.ReasonNoPath, api.ReasonUnreached, api.ReasonConflicted,
	api.ReasonTriggerUnmatched, api.ReasonUnsetOverride, api.ReasonConstraintViolated,
	api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened,
	api.ReasonRequirementUnmet, api.ReasonEffectiveInvalid, api.ReasonBlastRadius,
	api.ReasonLimitShadowed, api.ReasonLimitWidened,
	api.ReasonConditionSkipped, api.ReasonNotRead, api.ReasonOverridden, api.ReasonApplyOrder,
}

func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(btoi(a.NotBinding), btoi(b.NotBinding)),
		cmp.Compare(slices.Index(reasonOrder, a.Code), slices.Index(reasonOrder, b.Code)),
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(btoi(a.Rule == ""), btoi(b.Rule == "")), // a sum comes last
		strings.Compare(a.Rule, b.Rule),
		api.CompareRefs(a.Policy, b.Policy),
		strings.Compare(a.What, b.What),
		strings.Compare(a.Advice, b.Advice),
		strings.Compare(a.Field, b.Field),
		strings.Compare(a.Request, b.Request),
		cmp.Compare(btoi(a.ReplacedAsWhole), btoi(b.ReplacedAsWhole)),
	)
}

// report adds a finding. The profile of the policy that is written may give its reason
// another action than the default; an action that was lowered to a warning stays one.
func (ev *write) report(code api.ReasonCode, action api.Action, f Finding) {
	var kind *policykind.Kind
	if ev.policy != nil {
		kind = ev.policy.Kind
	}
	ev.reportForKind(kind, code, action, f)
}

// reportForKind adds a finding about the policies of a kind, whichever object is written.
func (ev *write) reportForKind(kind *policykind.Kind, code api.ReasonCode, action api.Action, f Finding) {
	f.Code, f.Action = code, action
	if kind != nil && api.DefaultActions[code] == action {
		f.Action = kind.Action(code, action)
	}
	ev.findings.add(f)
}

// warn adds a warning.
func (ev *write) warn(code api.ReasonCode, f Finding, what string, args ...any) {
	f.What = fmt.Sprintf(what, args...)
	ev.report(code, api.Warn, f)
}

// newly returns what is done about something that must not be: a denial, or a warning if it
// was so before the write. What exists stays editable.
func newly(before bool) api.Action {
	if before {
		return api.Warn
	}
	return api.Deny
}

// fieldOf returns the field of the written object that a finding without one is about, ""
// if it is about none alone.
func (ev *write) fieldOf(f *Finding) string {
	switch o := ev.change.Object().(type) {
	case *policykind.Policy:
		return policyField(f, o)
	case *gateway.Route:
		if len(o.Rules) > 0 && f.Code == api.ReasonUnreached {
			return "spec.rules"
		}
	}
	return ""
}

func policyField(f *Finding, p *policykind.Policy) string {
	switch f.Code { //nolint:exhaustive // the others are about a rule
	case api.ReasonInvalid:
		return p.InvalidField()
	case api.ReasonTargetNotFound, api.ReasonConflicted, api.ReasonNoPath, api.ReasonUnreached:
		if len(p.Targets) == 1 {
			return p.TargetField(p.Targets[0].Ref, p.Targets[0].Section, p.Targets[0].Port)
		}
		return p.TargetsField()
	case api.ReasonUnsetOverride:
		return p.UnsetField(f.Rule)
	}
	return p.RuleField(f.Rule)
}

// targetField returns the field of a target of the policy that is written.
func (ev *write) targetField(t api.Target) string {
	return ev.policy.TargetField(t.Target, t.Section, t.Port)
}
