package guard

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// NewOwners names the owners that an edit adds to an object, "" for none
// (Change.Owner). A reference that is edited is a new one: the garbage collector
// takes an owner of another name for gone.
func NewOwners(was, now []metav1.OwnerReference) string {
	var out []string
	for _, o := range now {
		if !slices.ContainsFunc(was, func(old metav1.OwnerReference) bool {
			return old.UID == o.UID && old.APIVersion == o.APIVersion && old.Kind == o.Kind && old.Name == o.Name
		}) {
			out = append(out, o.Kind+" "+o.Name)
		}
	}
	return clipped(strings.Join(out, ", "))
}

// withoutGoing returns a view without the grants of a namespace that are being
// deleted, or will be with an owner, but for the one that is written: what hangs
// on a grant may rest on those as little.
func withoutGoing(v *snapshot.View, written api.Ref) *snapshot.View {
	var gone []snapshot.Change
	for o := range v.In(written.PolicyKind(), written.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Deleting && g.Ref() != written {
			gone = append(gone, snapshot.Delete(g.Ref()))
		}
	}
	if len(gone) == 0 {
		return v
	}
	return v.With(gone...)
}
