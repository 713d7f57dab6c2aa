package v1alpha1

import "strings"

// Annotations that only Overrule writes.
const (
	// AnnotationPrefix is the prefix of all annotations and labels of Overrule.
	AnnotationPrefix = "overrule.dev/"
	// AnnotationEffectivePolicy is set on routes: for each policy kind and path,
	// the policy that each effective rule comes from.
	AnnotationEffectivePolicy = AnnotationPrefix + "effective-policy"
	// AnnotationOutcome is set on policies: the state, the numbers of paths, and
	// the policies that override it.
	AnnotationOutcome = AnnotationPrefix + "outcome"
)

// affectedSuffix is the suffix of the annotations on affected objects.
const affectedSuffix = "Affected"

// Affected returns the condition type and annotation name for objects that policies
// of a kind affect (GEP-713, "Target object status"). Kinds of the same name in
// different groups share it.
func Affected(kind string) string { return AnnotationPrefix + kind + affectedSuffix }

// IsAffected reports whether a name is one that Affected returns.
func IsAffected(name string) bool {
	return strings.HasPrefix(name, AnnotationPrefix) && strings.HasSuffix(name, affectedSuffix)
}

// IsOwnAnnotation reports whether Overrule writes annotations of a name.
func IsOwnAnnotation(name string) bool {
	return name == AnnotationEffectivePolicy || name == AnnotationOutcome || IsAffected(name)
}

// LabelRefresh is a label that users set: "false" on an object or a namespace stops
// background updates of the annotations there.
const LabelRefresh = AnnotationPrefix + "refresh"

// AnnotationAcknowledge is an annotation that users set on an object whose write was
// denied with the reason BlastRadius. Its value is in the denial: HASH-PATHS, a hash of what
// is written and the number of paths that it may change.
const AnnotationAcknowledge = AnnotationPrefix + "acknowledge-blast-radius"
