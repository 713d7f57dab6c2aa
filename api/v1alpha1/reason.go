package v1alpha1

// ReasonCode is the reason for a denial or a warning (docs/semantics.md, What is evaluated at admission).
type ReasonCode string

// The reasons. Each is documented in docs/reasons.md.
const (
	ReasonInvalid        ReasonCode = "Invalid"
	ReasonTargetNotFound ReasonCode = "TargetNotFound"
	// ReasonNoPath is for a policy that has no effect, because no path leads through
	// any of its targets.
	ReasonNoPath ReasonCode = "NoPath"
	// ReasonUnreached is for a route, a rule, a listener or a policy that no request
	// reaches, because others take all.
	ReasonUnreached     ReasonCode = "Unreached"
	ReasonConflicted    ReasonCode = "Conflicted"
	ReasonUnsetOverride ReasonCode = "UnsetOverride"
	// ReasonConstraintViolated is for a rule of the written policy that an override
	// replaces, because it meets the override's condition (when). It is not about
	// PolicyConstraints: see ReasonRequirementUnmet.
	ReasonConstraintViolated ReasonCode = "ConstraintViolated"
	ReasonOverridden         ReasonCode = "Overridden"
	ReasonTooMuch            ReasonCode = "TooMuch"
	// ReasonRulesLost is for rules of another policy that are in force on a path before a
	// write and not after it.
	ReasonRulesLost ReasonCode = "RulesLost"
	// ReasonOverrideRemoved is for a rule of an override that is no longer in effect
	// because its policy is changed or deleted.
	ReasonOverrideRemoved ReasonCode = "OverrideRemoved"
	// ReasonOverrideEvaded is for a rule of an override that is no longer in effect
	// because another object is changed or deleted.
	ReasonOverrideEvaded ReasonCode = "OverrideEvaded"
	// ReasonOverrideWeakened is for a rule of an override that another policy
	// weakens, by a gate or an alternative.
	ReasonOverrideWeakened ReasonCode = "OverrideWeakened"
	// ReasonRequirementUnmet is for an effective policy that violates a
	// PolicyConstraint.
	ReasonRequirementUnmet ReasonCode = "RequirementUnmet"
	// ReasonEffectiveInvalid is for an effective spec that does not match the schema
	// of its kind.
	ReasonEffectiveInvalid ReasonCode = "EffectiveInvalid"
	// ReasonTriggerUnmatched is for a limit of which some or all triggers match no
	// rule of a route.
	ReasonTriggerUnmatched ReasonCode = "TriggerUnmatched"
	// ReasonLimitShadowed is for a limit that is not bound to a rule that it matches,
	// because another limit is.
	ReasonLimitShadowed ReasonCode = "LimitShadowed"
	// ReasonLimitWidened is for a limit that applies to requests that its triggers do
	// not select.
	ReasonLimitWidened ReasonCode = "LimitWidened"
	// ReasonBlastRadius is for the number of paths that a write affects.
	ReasonBlastRadius ReasonCode = "BlastRadius"
	// ReasonConditionSkipped is for a condition that refers to a key that lower
	// policies omit, or that cannot be evaluated.
	ReasonConditionSkipped ReasonCode = "ConditionSkipped"
	// ReasonNotRead is for something that Overrule does not read.
	ReasonNotRead ReasonCode = "NotRead"
	// ReasonUnknownField is for a field of a manifest that is not in the schema of its
	// kind. The API server drops it, or rejects the manifest. Only the plugin reports it.
	ReasonUnknownField ReasonCode = "UnknownField"
	// ReasonSchemaInvalid is for a manifest that violates the schema of its kind, so that
	// the API server rejects it. Only the plugin reports it.
	ReasonSchemaInvalid ReasonCode = "SchemaInvalid"
	// ReasonApplyOrder is for a change of several objects that is allowed in another order
	// only. Only the plugin reports it.
	ReasonApplyOrder ReasonCode = "ApplyOrder"
)

// The reason codes of denials without a finding: the write could not be evaluated.
const (
	// DenialFailed is for an evaluation that failed.
	DenialFailed = "Failed"
	// DenialPanic is for an evaluation that panicked.
	DenialPanic = "Panic"
	// DenialOverloaded is for a review for which there was no memory or no free slot.
	DenialOverloaded = "Overloaded"
	// DenialNoLeader is for a write for which no replica was the leader in time.
	DenialNoLeader = "NoLeader"
	// DenialPoliciesUnlisted is for a write whose result depends on policies that were
	// never listed.
	DenialPoliciesUnlisted = "PoliciesUnlisted"
	// DenialRightsUnknown is for a write whose author has permissions that could not be
	// determined.
	DenialRightsUnknown = "RightsUnknown"
	// DenialNotDryRun is for an EffectivePolicyReview that is not a dry run.
	DenialNotDryRun = "NotDryRun"
	// DenialNotFound is for an EffectivePolicyReview about an object that does not exist,
	// or that the user is not allowed to get.
	DenialNotFound = "NotFound"
)

// DefaultActions are the actions of the reasons whose action a profile can change, without one.
var DefaultActions = map[ReasonCode]Action{
	ReasonInvalid: Deny, ReasonConflicted: Deny, ReasonUnsetOverride: Deny, ReasonConstraintViolated: Deny,
	ReasonOverrideRemoved: Deny, ReasonOverrideEvaded: Deny, ReasonOverrideWeakened: Deny,
	ReasonEffectiveInvalid: Deny, ReasonTriggerUnmatched: Deny,

	ReasonTargetNotFound: Warn, ReasonNoPath: Warn, ReasonUnreached: Warn, ReasonRulesLost: Warn, ReasonOverridden: Warn,
	ReasonBlastRadius: Warn, ReasonConditionSkipped: Warn, ReasonLimitShadowed: Warn, ReasonLimitWidened: Warn,
}
