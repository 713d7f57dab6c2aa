package annotations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// MaxSize is the maximum size of an annotation, in bytes.
const MaxSize = 4 << 10

// AtLastWrite returns the annotation of an object that is not refreshed, so that its text
// does not read as the present state.
func AtLastWrite(text string) string {
	if text == "" {
		return ""
	}
	return asOfLastWrite + strings.TrimPrefix(text, "{")
}

const asOfLastWrite = `{"asOf":"last write",`

// Name returns the name of the annotation of an object, "" if its kind has none.
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

// Text computes the annotation of a route or a policy in a view; "" if it has no
// content. Admission and later updates use it, so the same view results in the same
// text. It must not depend on the uid, the object's own name or the time, which are not
// known on a create. also is called for each path that the text covers, unless it is
// nil. The error is that of the budget, or of also.
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

// walk visits the paths through an object.
type walk func(visit func(*effective.Effective) error) error

// marshalLimited returns an annotation as compact JSON. If it exceeds MaxSize, it
// returns the shorter form with a hash of the whole.
func marshalLimited(annotation any, shorter func(hash string) any) (string, error) {
	data, err := json.Marshal(annotation)
	if err != nil {
		return "", err
	}
	if len(data) <= MaxSize-len(asOfLastWrite) {
		return string(data), nil
	}
	sum := sha256.Sum256(data)
	data, err = json.Marshal(shorter(hex.EncodeToString(sum[:8])))
	return string(data), err
}
