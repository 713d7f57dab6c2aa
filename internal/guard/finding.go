package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Finding is one reason to deny a write, or one warning.
type Finding struct {
	Code   api.ReasonCode
	Action api.Action
	// Rule is the key of the rule that it is about, if one.
	Rule string
	// Policy is the other policy: the one that overrides, holds the target or
	// loses its effect.
	Policy *api.Ref
	// Field is the path of the field of the written object that it is about, such as
	// spec.targetRefs[0], "" if it is about none alone.
	Field string
	// What happened, and what to do about it.
	What, Advice string
	// Request is a request that is no longer subject to an override, since ServedBy serves
	// it after the write.
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
		Code: f.Code, Rule: f.Rule, Policy: f.Policy, Field: f.Field, Whole: f.ReplacedAsWhole, Request: f.Request, Message: f.Message(),
		Repeats: f.Repeats, CountsPaths: f.Code == api.ReasonBlastRadius && f.Short != "",
	}
}

// findings collects findings, each once, by all that they say: a write can
// bring thousands. What is said on two paths, with two actions, has the
// stricter one.
type findings map[findingKey]Finding

type findingKey struct {
	Finding
	policy api.Ref
}

func (fs *findings) add(f Finding) {
	at := findingKey{Finding: f}
	at.Action = ""
	if f.Policy != nil {
		at.policy, at.Policy = *f.Policy, nil
	}
	if *fs == nil {
		*fs = make(findings)
	}
	if old, ok := (*fs)[at]; !ok || strictness(f.Action) > strictness(old.Action) {
		(*fs)[at] = f
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

// reasonOrder is the order of findings: what is wrong with the object itself, how many
// paths change, and then what it costs others, which may be long.
var reasonOrder = []api.ReasonCode{
	api.ReasonSchemaInvalid, api.ReasonUnknownField, api.ReasonInvalid, api.ReasonTooMuch, api.ReasonRulesLost, api.ReasonTargetNotFound, api.ReasonNoPath, api.ReasonUnreached, api.ReasonConflicted,
	api.ReasonTriggerUnmatched, api.ReasonUnsetOverride, api.ReasonConstraintViolated,
	api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened,
	api.ReasonRequirementUnmet, api.ReasonEffectiveInvalid, api.ReasonBlastRadius,
	api.ReasonLimitShadowed, api.ReasonLimitWidened,
	api.ReasonConditionSkipped, api.ReasonNotRead, api.ReasonOverridden,
}

func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(btoi(a.NotBinding), btoi(b.NotBinding)),
		cmp.Compare(slices.Index(reasonOrder, a.Code), slices.Index(reasonOrder, b.Code)),
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(btoi(a.Rule == ""), btoi(b.Rule == "")), // a sum comes last
		strings.Compare(a.Rule, b.Rule),
		comparePolicies(a.Policy, b.Policy),
		strings.Compare(a.What, b.What),
		strings.Compare(a.Advice, b.Advice),
	)
}

func comparePolicies(a, b *api.Ref) int {
	return api.CompareRefs(deref(a), deref(b))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// report adds a finding. The profile of the policy that is written may give its reason
// another action than the default; an action that was lowered to a warning stays one.
func (ev *evaluation) report(code api.ReasonCode, action api.Action, f Finding) {
	var kind *policykind.Kind
	if ev.policy != nil {
		kind = ev.policy.Kind
	}
	ev.reportForKind(kind, code, action, f)
}

// reportForKind adds a finding about the policies of a kind, whichever object is written.
func (ev *evaluation) reportForKind(kind *policykind.Kind, code api.ReasonCode, action api.Action, f Finding) {
	f.Code, f.Action = code, action
	if kind != nil && action == defaultActions[code] {
		f.Action = kind.Action(code, action)
	}
	ev.findings.add(f)
}

// defaultActions are the actions of the reasons that a profile can change.
var defaultActions = map[api.ReasonCode]api.Action{
	api.ReasonInvalid:            api.Deny,
	api.ReasonTargetNotFound:     api.Warn,
	api.ReasonNoPath:             api.Warn,
	api.ReasonUnreached:          api.Warn,
	api.ReasonConflicted:         api.Deny,
	api.ReasonUnsetOverride:      api.Deny,
	api.ReasonConstraintViolated: api.Deny,
	api.ReasonRulesLost:          api.Warn,
	api.ReasonOverridden:         api.Warn,
	api.ReasonBlastRadius:        api.Warn,
	api.ReasonConditionSkipped:   api.Warn,
	api.ReasonOverrideRemoved:    api.Deny,
	api.ReasonOverrideEvaded:     api.Deny,
	api.ReasonOverrideWeakened:   api.Deny,
	api.ReasonEffectiveInvalid:   api.Deny,
	api.ReasonTriggerUnmatched:   api.Deny,
	api.ReasonLimitShadowed:      api.Warn,
	api.ReasonLimitWidened:       api.Warn,
}
