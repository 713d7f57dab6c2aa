package v1alpha1

import "strings"

// Annotations that Overrule writes, and nothing else does.
const (
	// AnnotationPrefix is the prefix of them all.
	AnnotationPrefix = "overrule.dev/"
	// AnnotationEffectivePolicy stands on routes: per policy kind and path,
	// which policy gives each rule.
	AnnotationEffectivePolicy = AnnotationPrefix + "effective-policy"
	// AnnotationOutcome stands on policies: state, counts, what beat it.
	AnnotationOutcome = AnnotationPrefix + "outcome"
)

// affectedSuffix ends the names of the marks on affected objects.
const affectedSuffix = "Affected"

// Affected returns the type of the condition, and the name of the annotation, on
// objects that policies of a kind affect (GEP-713, "Target object status"). Kinds of
// one name share it, whatever their groups.
func Affected(kind string) string { return AnnotationPrefix + kind + affectedSuffix }

// IsAffected reports whether a name is one of Affected.
func IsAffected(name string) bool {
	return strings.HasPrefix(name, AnnotationPrefix) && strings.HasSuffix(name, affectedSuffix)
}

// IsMark reports whether an annotation of that name is one that Overrule writes.
func IsMark(name string) bool {
	return name == AnnotationEffectivePolicy || name == AnnotationOutcome || IsAffected(name)
}

// LabelRefresh is what people write: "false" on an object or on a namespace leaves
// the marks there as they are.
const LabelRefresh = AnnotationPrefix + "refresh"

// AnnotationAcknowledge is what people write: the hash that a denial for
// BlastRadius printed, on the object whose write it denied.
const AnnotationAcknowledge = AnnotationPrefix + "acknowledge-blast-radius"

// LabelCanary stands on what the canary writes in its dry runs, so that others
// can tell it from what people write.
const LabelCanary = AnnotationPrefix + "canary"

// GroupCanary is the group of the kind that the canary's PolicyProfiles are
// about. It is made up.
const GroupCanary = "canary." + Group
