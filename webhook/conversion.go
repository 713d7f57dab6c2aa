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

// A write in one version stores the whole object as that version has it, even where
// it is one of a subresource: the API server removes what the schema of the version
// does not have, and fills in its defaults. The oldObject of such a write went through
// that schema, too, and is not what is stored.

const subresourceStatus = "status"

// otherVersion reports whether a request may be made in another version than the
// one that is read: its objects were converted, or it is one of a subresource, which
// is sent only then.
func otherVersion(r *admissionv1.AdmissionRequest) bool {
	return r.SubResource != "" || r.RequestKind != nil && *r.RequestKind != r.Kind
}

// errStored tells that what is stored could not be found out.
var errStoredUnreadable = errors.New("the policy that is stored cannot be read")

// asStored replaces the oldObject of a policy that is written in another version by
// the policy that is stored: the view has it, unless that is older or newer than the
// write, else the API server. If the policy has changed since the request was made,
// the API server evaluates the write again before it stores anything.
func (s *Server) useStored(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, c *guard.Change) error {
	p, ok := c.Before.(*policykind.Policy)
	if !ok || !otherVersion(r) || v.Get(p.Ref()) == c.Before {
		return nil
	}
	if s.Stored == nil {
		return fmt.Errorf("%w: no client", errStoredUnreadable)
	}
	o, err := s.Stored(ctx, p.Kind, p.Ref())
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errStoredUnreadable, err)
	case o == nil:
		return fmt.Errorf("%w: %s does not exist", errStoredUnreadable, p.Ref())
	}
	c.Before = o
	return nil
}

// coerced is store.Decode of a policy that is written in another version: as it will
// be read in the version that is read, which may lack what that version has.
func decodeCoerced(ref api.PolicyKind, kind *policykind.Kind, data []byte, created int64) (snapshot.Object, error) {
	object, err := decode.Object(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	kind.Schema().Coerce(object, nil)
	return kind.Read(object, created), nil
}

// statusOnly reports whether the write of a subresource changes nothing of a policy.
func policyUnchanged(r *admissionv1.AdmissionRequest, c guard.Change) bool {
	was, ok := c.Before.(*policykind.Policy)
	is, same := c.After.(*policykind.Policy)
	return r.SubResource != "" && ok && same && was.Same(is)
}
