package commands

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// redactStep removes the values of policies from the result of a step. All that commands
// print of it, in whatever format, is made of it.
func redactStep(e *evaluatedStep) {
	e.redacted = true
	for _, all := range [][]guard.Finding{e.decision.Denials, e.decision.Warnings, e.decision.Audits} {
		for i := range all {
			if f := &all[i]; !withoutValues[f.Code] {
				f.What, f.Short, f.Advice = redactedMessage(f.Code, f.Rule, f.Reason().Policy, ""), "", ""
			}
		}
	}
}

// redactReasons replaces messages of an API server.
func redactReasons(all []api.Reason) {
	for i := range all {
		r := &all[i]
		r.Message = redactedMessage(r.Code, r.Rule, r.Policy, r.Message)
	}
}

func redactViolations(all []api.Violation) {
	for i := range all {
		v := &all[i]
		v.Message = redactedMessage(v.Code, v.Rule, v.Policy, v.Message)
	}
}

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
