package annotations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// MaxSize is the maximum size of an annotation, in bytes.
const MaxSize = 4 << 10

// Name returns the name of the annotation on an object, or "" where it has none.
func Name(o snapshot.Object) string {
	switch o.(type) {
	case *policykind.Policy:
		return api.AnnotationOutcome
	case *gateway.Route:
		return api.AnnotationEffectivePolicy
	default:
		return ""
	}
}

// Text computes the annotation of an object that has one, as the view has it; ""
// where it has nothing to say. It holds nothing that depends on a uid, the
// object's own name or the time: none of them is there yet on a create. Each
// path that the text is about is shown to also, unless that is nil. The error is
// that of the budget, or also's.
func Text(e *effective.Engine, v *snapshot.View, o snapshot.Object, b *effective.Budget, also func(*effective.Effective) error) (string, error) {
	walk := func(visit func(*effective.Effective) error) error {
		return e.Walk(v, effective.ScopeOf(o), false, b, func(at *effective.Effective) error {
			if also != nil {
				if err := also(at); err != nil {
					return err
				}
			}
			return visit(at)
		})
	}
	if p, ok := o.(*policykind.Policy); ok {
		return policyText(walk, v, p)
	}
	return routeText(walk, o.Ref())
}

// walk shows the paths through an object.
type walk func(visit func(*effective.Effective) error) error

// limited returns a note as compact JSON, or the shorter one with the hash of
// the whole where it is too large.
func marshalLimited(note any, shorter func(hash string) any) (string, error) {
	data, err := json.Marshal(note)
	if err != nil {
		return "", err
	}
	if len(data) <= MaxSize {
		return string(data), nil
	}
	sum := sha256.Sum256(data)
	data, err = json.Marshal(shorter(hex.EncodeToString(sum[:8])))
	return string(data), err
}
