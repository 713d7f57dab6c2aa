package webhook

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
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
	decode := snapshot.Decode
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
