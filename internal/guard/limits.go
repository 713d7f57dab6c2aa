package guard

import "overrule.dev/overrule/internal/cel"

// The limits of one evaluation: what it looks at, and what its messages name.
const (
	// DefaultBudget is what the conditions of an evaluation may cost: about a second of evaluating
	// them.
	DefaultBudget = 1_500_000
	// PathBudget is what each path adds to the budget: a condition at its limit, evaluated
	// twice. So a condition that is on very many paths is limited by time, and not by their
	// number.
	PathBudget = 2 * cel.Limit
	// maxPathsNamed is how many paths of a constraint are named.
	maxPathsNamed = 3
	// maxMovedRulesWork bounds the work of a search for requests that lose rules, to about 60
	// ms: what it has not found by then is not reported.
	maxMovedRulesWork = 1 << 19
	// maxPathless is how many targets without a path are named: a selector can have thousands.
	maxPathless = 8
	// maxOverriddenOthers is how many rules of other policies are reported one by one.
	maxOverriddenOthers = 20
	// maxOverriddenRules is how many rules of other policies are counted separately: few of
	// them are reported at all, none is denied for, and there may be millions.
	maxOverriddenRules = 10_000
	// maxConditions is how many conditions (`when`) the policies of one kind may have together
	// on one object, or on one section of it. Writes above the object, of others, evaluate
	// them all. The number bounds that cost whatever values the conditions read: those are
	// written by others, too, and a condition that is cheap today can cost its limit tomorrow.
	maxConditions = 16
	// maxValidations is how many validations the PolicyConstraints of one namespace may
	// have together for a policy kind: as many as one may have by its schema. Writers of
	// what is below their targets have to pay for them all.
	maxValidations = 64
	// maxRules is how many rules the policies of one kind in one namespace may have
	// together: writes above them are compared with each. Folding that many takes less than
	// a tenth of a second.
	maxRules = 100_000
	// fewRules is how many rules a policy may have without being counted.
	fewRules = 100
	// maxLiveReads is the most targets that a policy may have to have them read live, and the
	// most objects that are: Gateway API takes at most 16 targets.
	maxLiveReads = 16
	// maxUnmet is how many violations of one requirement are reported one by one: a message
	// may differ from path to path.
	maxUnmet = 10
	// maxRuleLosses is how many losses are counted separately, maxRuleLossesReported how many
	// are reported.
	maxRuleLosses         = 1_000
	maxRuleLossesReported = 20
	// maxLowerCost is what effective specs may cost to check that contain lower policies of
	// other namespaces: those only warn of what is wrong. Else their writers could make writes
	// above too much.
	maxLowerCost = 24 << 20
	// maxSchemaViolations is how many are reported one by one.
	maxSchemaViolations = 20
	// maxCandidateSets is how many are kept: paths come route by route, so that older ones are
	// seldom needed again, and all of a large gateway's would take too much memory.
	maxCandidateSets = 64
	// maxNamed is how many policies are named, maxWeakenedNamed how many weakened rules.
	maxNamed         = 4
	maxWeakenedNamed = 3
	// Most objects that are looked at, and reported one by one, as unreached.
	maxUnreachedPaths = 256
	maxUnreached      = 5
	maxReachGateways  = 16
	maxTaken          = 64
	// maxUnreachedCounted is how many paths are counted as unreached.
	maxUnreachedCounted = 10_000
	// maxWarnCost is what constraints may cost where they can only warn, in units of CEL cost.
	// It is no part of the budget of the write: else the authors of such constraints could use
	// that up.
	maxWarnCost = 100_000
	// maxLimits is how many findings of one group about limits of requests are reported one by
	// one, maxMissingMatches how many matches one names.
	maxLimits         = 20
	maxMissingMatches = 3
	// maxSampledMatches is about how many matches of all routes the nearest is looked up
	// in.
	maxSampledMatches = 1024
	// maxLimitRoutes is how many routes are counted each once; of more, those at several roots
	// count at each.
	maxLimitRoutes = 64
	// maxWidened is how many changes of limits are kept before matches that limits also apply
	// to are left out: few are reported at all.
	maxWidened = 10_000
)
