package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// decodeChange decodes the change of a request for the guard. The errors name what is
// missing in the request, or where an object does not match its kind
// (snapshot.ErrKind if objects of the kind are not evaluated).
func decodeChange(v *snapshot.View, r *admissionv1.AdmissionRequest, now time.Time) (guard.Change, error) {
	d := decoder{view: v, request: r, ref: kindOf(r), kind: v.Kind(kindOf(r)), created: policykind.InFlight(now)}
	c := guard.Change{Operation: guard.Operation(r.Operation), User: &r.UserInfo}
	var err error
	if c.Operation == guard.Update || c.Operation == guard.Delete {
		if c.Before, err = d.oldObject(); err != nil {
			return c, err
		}
	}
	if c.Operation == guard.Create || c.Operation == guard.Update {
		if c.After, err = d.object(); err != nil {
			return c, err
		}
	}
	if c.Before == nil && c.After == nil {
		return c, fmt.Errorf(`operation: Unsupported value: %q: supported values: "CREATE", "UPDATE", "DELETE"`, r.Operation)
	}
	return c, readMetadata(&c, r)
}

// decoder decodes the objects of a request.
type decoder struct {
	view    *snapshot.View
	request *admissionv1.AdmissionRequest
	ref     api.PolicyKind
	kind    *policykind.Kind // nil if it is not a policy kind
	created int64            // the creation time of an object that has none
}

// oldObject decodes the stored object.
func (d decoder) oldObject() (snapshot.Object, error) {
	data := d.request.OldObject.Raw
	if err := d.required("oldObject", data); err != nil {
		return nil, err
	}
	stored := api.Ref{Group: d.ref.Group, Kind: d.ref.Kind, Namespace: d.request.Namespace, Name: d.request.Name}
	o, err := d.view.DecodeStored(stored, d.kind, data, d.created)
	if err != nil {
		return nil, fmt.Errorf("oldObject: %w", err)
	}
	return o, nil
}

// object decodes the written object. A policy has no state: the state in the request
// is that of the policy that it replaces.
func (d decoder) object() (snapshot.Object, error) {
	data := d.request.Object.Raw
	if err := d.required("object", data); err != nil {
		return nil, err
	}
	decode := d.view.Decode
	if d.kind != nil && otherVersion(d.request) {
		decode = decodeCoerced
	}
	o, err := decode(d.ref, d.kind, data, d.created)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if p, ok := o.(*policykind.Policy); ok {
		p.State = policykind.State{}
	}
	return o, nil
}

// required returns an error if a field of the request is missing.
func (d decoder) required(field string, data []byte) error {
	if len(data) == 0 || string(data) == "null" {
		return fmt.Errorf("%s: Required value: %s of %s has none", field, d.request.Operation, d.ref)
	}
	return nil
}

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
	kind.Schema().Coerce(object)
	return kind.Read(object, created), nil
}

// policyUnchanged reports whether a write of a subresource changes nothing in a policy.
func policyUnchanged(r *admissionv1.AdmissionRequest, c guard.Change) bool {
	before, ok := c.Before.(*policykind.Policy)
	after, same := c.After.(*policykind.Policy)
	return r.SubResource != "" && ok && same && before.Same(after)
}
