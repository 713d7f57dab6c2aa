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

// change makes a change for the guard of a request. The errors tell what is
// missing in the request, or where an object does not match its kind
// (store.ErrKind if it is of no kind that is judged).
func decodeChange(v *snapshot.View, r *admissionv1.AdmissionRequest, now time.Time) (guard.Change, error) {
	ref := api.PolicyKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
	kind := v.Kind(ref)
	c := guard.Change{Operation: guard.Operation(r.Operation), User: &r.UserInfo}
	stored := func(data []byte) (snapshot.Object, error) {
		of := api.Ref{Group: ref.Group, Kind: ref.Kind, Namespace: r.Namespace, Name: r.Name}
		return v.DecodeStored(of, kind, data, policykind.InFlight(now))
	}
	written := func(data []byte) (snapshot.Object, error) {
		read := snapshot.Decode
		if kind != nil && otherVersion(r) {
			read = decodeCoerced
		}
		o, err := read(ref, kind, data, policykind.InFlight(now))
		if p, ok := o.(*policykind.Policy); ok {
			p.State = policykind.State{} // it has that of what it replaces, and does not say the same
		}
		return o, err
	}
	decode := func(name string, data []byte, read func([]byte) (snapshot.Object, error)) (snapshot.Object, error) {
		if len(data) == 0 || string(data) == "null" {
			return nil, fmt.Errorf("the %s of %s has no %s", r.Operation, ref, name)
		}
		o, err := read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return o, nil
	}
	var err error
	if c.Operation == guard.Update || c.Operation == guard.Delete {
		if c.Before, err = decode("oldObject", r.OldObject.Raw, stored); err != nil {
			return c, err
		}
	}
	if c.Operation == guard.Create || c.Operation == guard.Update {
		if c.After, err = decode("object", r.Object.Raw, written); err != nil {
			return c, err
		}
	}
	if c.Before == nil && c.After == nil {
		return c, fmt.Errorf("operation %q is none of CREATE, UPDATE, DELETE", r.Operation)
	}
	return c, readMetadata(&c, r)
}
