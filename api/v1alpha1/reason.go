package v1alpha1

// ReasonCode is why a write is denied or warned about (SEMANTICS section 8).
type ReasonCode string

// The reasons. Each is documented in docs/reasons.md.
const (
	ReasonInvalid        ReasonCode = "Invalid"
	ReasonTargetNotFound ReasonCode = "TargetNotFound"
	// ReasonNoPath warns that a policy is in force nowhere: no path goes through
	// any of its targets.
	ReasonNoPath             ReasonCode = "NoPath"
	ReasonConflicted         ReasonCode = "Conflicted"
	ReasonUnsetOverride      ReasonCode = "UnsetOverride"
	ReasonConstraintViolated ReasonCode = "ConstraintViolated"
	ReasonOverridden         ReasonCode = "Overridden"
	ReasonTooMuch            ReasonCode = "TooMuch"
	// ReasonOverrideRemoved tells that an override's rule that was in force is
	// not any more, because its own policy was edited or deleted.
	ReasonOverrideRemoved ReasonCode = "OverrideRemoved"
	// ReasonOverrideEvaded tells the same, because something else was changed.
	ReasonOverrideEvaded ReasonCode = "OverrideEvaded"
	// ReasonOverrideWeakened tells that another policy gates or waters down a
	// rule that an override holds.
	ReasonOverrideWeakened ReasonCode = "OverrideWeakened"
	// ReasonRequirementUnmet tells that a constraint is violated by the
	// effective policy of a path.
	ReasonRequirementUnmet ReasonCode = "RequirementUnmet"
	// ReasonEffectiveInvalid tells that an effective spec breaks the schema of
	// its kind.
	ReasonEffectiveInvalid ReasonCode = "EffectiveInvalid"
	// ReasonTriggerUnmatched tells that a limit's triggers match no rule of a
	// route, or not all of them do.
	ReasonTriggerUnmatched ReasonCode = "TriggerUnmatched"
	// ReasonLimitShadowed warns that a limit is not bound to a rule that it
	// matches, since another one comes first.
	ReasonLimitShadowed ReasonCode = "LimitShadowed"
	// ReasonLimitWidened warns that a limit holds for requests that its triggers
	// do not ask for.
	ReasonLimitWidened ReasonCode = "LimitWidened"
	// ReasonBlastRadius tells how far a write reaches.
	ReasonBlastRadius ReasonCode = "BlastRadius"
	// ReasonConditionSkipped warns that a condition names a key that the
	// policies below left out, or that it cannot be evaluated.
	ReasonConditionSkipped ReasonCode = "ConditionSkipped"
	// ReasonNotRead warns of something that Overrule does not read.
	ReasonNotRead ReasonCode = "NotRead"
)

// ChangeableReasons are those whose action a profile can change.
var ChangeableReasons = []ReasonCode{
	ReasonInvalid, ReasonTargetNotFound, ReasonNoPath, ReasonConflicted, ReasonUnsetOverride, ReasonConstraintViolated,
	ReasonOverridden, ReasonBlastRadius, ReasonConditionSkipped,
	ReasonOverrideRemoved, ReasonOverrideEvaded, ReasonOverrideWeakened, ReasonEffectiveInvalid,
	ReasonTriggerUnmatched, ReasonLimitShadowed, ReasonLimitWidened,
}
