package commands

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

// redactChanges removes the values of rules.
func redactChanges(items []api.Change) {
	for _, c := range items {
		redactRules(c.Rules)
	}
}

func redactRules(rules []api.RuleChange) {
	for _, r := range rules {
		for _, v := range []*api.RuleValue{r.Before, r.After} {
			if v != nil {
				v.Value, v.Redacted = nil, true
			}
		}
	}
}

func redactVerdict(v *api.Verdict) {
	for i := range v.Reasons {
		redactReason(&v.Reasons[i])
	}
	for i := range v.Warnings {
		redactReason(&v.Warnings[i])
	}
}

func redactViolations(all []api.Violation) {
	for i, v := range all {
		all[i].Message = redactedMessage(v.Code, v.Rule, v.Policy, v.Message)
	}
}

// redactReason replaces a message that may quote a policy.
func redactReason(r *api.Reason) { r.Message = redactedMessage(r.Code, r.Rule, r.Policy, r.Message) }

// withoutValues are the reasons whose messages name objects, rules and requests, and do not
// quote the content of a policy, or not where values are redacted.
var withoutValues = map[api.ReasonCode]bool{
	api.ReasonTargetNotFound: true, api.ReasonNoPath: true, api.ReasonUnreached: true, api.ReasonConflicted: true, api.ReasonUnsetOverride: true,
	api.ReasonRulesLost: true, api.ReasonOverridden: true, api.ReasonOverrideRemoved: true, api.ReasonOverrideEvaded: true, api.ReasonOverrideWeakened: true,
	api.ReasonBlastRadius: true, api.ReasonTooMuch: true, api.ReasonUnknownField: true,
}

// redactedMessage returns a message without values of policies: one that is made of the
// code, the rule and the other policy, if the message may have some.
func redactedMessage(code api.ReasonCode, rule string, policy *api.Ref, message string) string {
	if withoutValues[code] {
		return message
	}
	text := "details are omitted, since they may have values of policies"
	if policy != nil {
		text = fmt.Sprintf("%s: %s", *policy, text)
	}
	if rule != "" {
		text = rule + ": " + text
	}
	return text
}
