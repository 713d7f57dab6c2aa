package webhook

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// A write in one version stores the whole object as that version has it, even if it is
// a write of a subresource: the API server prunes the fields that the schema of the
// version does not have, and sets its defaults. The oldObject of such a write went
// through that schema too, and is not the stored object.

// otherVersion reports whether a request may be in another version than the one that is
// read: its objects were converted, or it is for a subresource, which is sent only then.
func otherVersion(r *admissionv1.AdmissionRequest) bool {
	return r.SubResource != "" || r.RequestKind != nil && *r.RequestKind != r.Kind
}

// errStoredUnreadable is returned if the stored policy is not known.
var errStoredUnreadable = errors.New("cannot read the stored policy")

// useStored replaces the oldObject of a policy that is written in another version by
// the stored policy. That is in the view, unless the view is older or newer than the
// write; otherwise the API server is asked. If the policy has changed since the request
// was made, the API server evaluates the write again before it stores anything.
func (s *Server) useStored(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, c *guard.Change) error {
	p, ok := c.Before.(*policykind.Policy)
	if !ok || !otherVersion(r) || v.Get(p.Ref()) == c.Before {
		return nil
	}
	if s.opts.Stored == nil {
		return fmt.Errorf("%w: no client", errStoredUnreadable)
	}
	o, err := s.opts.Stored(ctx, p.Kind, p.Ref())
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errStoredUnreadable, err)
	case o == nil:
		return fmt.Errorf("%w: %s not found", errStoredUnreadable, p.Ref())
	}
	c.Before = o
	return nil
}

// decodeCoerced is snapshot.Decode for a policy that is written in another version: it
// decodes what remains in the version that is read.
func decodeCoerced(ref api.PolicyKind, kind *policykind.Kind, data []byte, created int64) (snapshot.Object, error) {
	object, err := decode.Object(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	kind.Schema().Coerce(object, nil)
	return kind.Read(object, created), nil
}

// policyUnchanged reports whether a write of a subresource changes nothing in a policy.
func policyUnchanged(r *admissionv1.AdmissionRequest, c guard.Change) bool {
	before, ok := c.Before.(*policykind.Policy)
	after, same := c.After.(*policykind.Policy)
	return r.SubResource != "" && ok && same && before.Same(after)
}
