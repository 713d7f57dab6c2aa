package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/annotations"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// mutate writes our annotation. It never denies: the validating webhook gets the same
// write.
func mutate(ctx context.Context, call *call, v *snapshot.View) response {
	r := call.request
	resp := allow()
	c, err := decodeChange(v, r, call.opts.Now())
	if err != nil || c.After == nil || r.SubResource != "" {
		return resp
	}
	ctx, cancel := withFraction(ctx, 3) // the validating webhook needs the rest
	defer cancel()
	ops, err := call.annotationPatch(v, r, c, effective.NewBudget(ctx, guard.DefaultBudget))
	if err != nil {
		call.opts.Log.V(1).Info("no annotation", "uid", r.UID, "reason", err.Error())
		return resp
	}
	if len(ops) > 0 {
		if err := resp.setPatch(ops); err != nil {
			call.opts.Log.Error(err, "cannot encode patch", "uid", r.UID)
		}
	}
	return resp
}

// allowOnFailure is the response of the mutating webhook if it fails.
func allowOnFailure(string, string) response { return allow() }

// patchOperation is one operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// mutableParts are the parts of an object on which the annotation depends.
type mutableParts struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`

	spec []byte // raw JSON
}

// mutablePartsOf decodes the metadata of an object. The object was decoded before, so
// its spec does not need to be.
func mutablePartsOf(object []byte) (mutableParts, error) {
	p := mutableParts{spec: decode.Field(object, "spec")}
	metadata := decode.Field(object, "metadata")
	if metadata == nil {
		return p, nil
	}
	return p, json.Unmarshal(metadata, &p)
}

// annotationPatch returns the patch that sets our annotation on the object of a
// request. If neither spec nor labels changed, the annotation stays, so that an
// unchanged apply is a no-op. If the writer changed the annotation, it is computed
// again: no writer is trusted, and an annotation that the refresh controller wrote
// stays because it is the result of the computation.
func (s *Server) annotationPatch(v *snapshot.View, r *admissionv1.AdmissionRequest, c guard.Change, b *effective.Budget) ([]patchOperation, error) {
	name := annotations.Name(c.After)
	if name == "" {
		return nil, nil
	}
	after, err := mutablePartsOf(r.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("object.metadata: %w", err)
	}
	var before mutableParts
	if c.Operation == guard.Update {
		if before, err = mutablePartsOf(r.OldObject.Raw); err != nil {
			return nil, fmt.Errorf("oldObject.metadata: %w", err)
		}
	}
	same := c.Operation == guard.Update && bytes.Equal(after.spec, before.spec) && maps.Equal(after.Labels, before.Labels) && sameBesideSpec(c)
	if same && after.sameAnnotation(name, before) {
		return nil, nil
	}
	text, err := annotations.Text(s.opts.Guard.Engine, v.With(snapshot.Put(c.After)), c.After, b, nil)
	switch {
	case err == nil && s.opts.Refresh && refreshes(after.Labels) && refreshes(v.NamespaceLabels(c.After.Ref().Namespace)):
		return setAnnotation(name, after, text), nil
	case err == nil:
		return setAnnotation(name, after, annotations.AtLastWrite(text)), nil
	case same: // restore the previous annotation, which was ours
		return setAnnotation(name, after, before.Annotations[name]), nil
	default: // none is better than one that may be wrong
		s.opts.Log.V(1).Info("no annotation", "uid", r.UID, "reason", err.Error())
		return setAnnotation(name, after, ""), nil
	}
}

// sameBesideSpec reports whether a write leaves the rules of a policy, and the annotations of
// a route that tools do not own, as they are.
func sameBesideSpec(c guard.Change) bool {
	switch after := c.After.(type) {
	case *policykind.Policy:
		before, ok := c.Before.(*policykind.Policy)
		return ok && after.SameRules(before)
	case *gateway.Route:
		before, ok := c.Before.(*gateway.Route)
		return ok && maps.Equal(after.Annotations, before.Annotations)
	default:
		return true
	}
}

// refreshes reports whether the labels of an object, or of its namespace, let its annotation
// be updated without a write of it.
func refreshes(labels map[string]string) bool { return labels[api.LabelRefresh] != "false" }

// sameAnnotation reports whether two objects have the same annotation of a name.
func (p mutableParts) sameAnnotation(name string, o mutableParts) bool {
	value, ok := p.Annotations[name]
	old, existed := o.Annotations[name]
	return value == old && ok == existed
}

// jsonPointerEscaper escapes an element of a JSON pointer (RFC 6901).
var jsonPointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// setAnnotation returns the operations that set an annotation, or remove it if the
// value is "".
func setAnnotation(name string, now mutableParts, value string) []patchOperation {
	old, exists := now.Annotations[name]
	path := "/metadata/annotations/" + jsonPointerEscaper.Replace(name)
	switch {
	case value == "" && exists:
		return []patchOperation{{Op: "remove", Path: path}}
	case value == old:
		return nil
	case now.Annotations == nil:
		return []patchOperation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{name: value}}}
	default:
		return []patchOperation{{Op: "add", Path: path, Value: value}}
	}
}
