package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/webhook"
)

// garbageCollector is the user whose deletions are garbage collection.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// request returns the request by which the API server asked about a write on this
// state, nil if it did not.
func (s *state) request(w Write) (*admissionv1.AdmissionRequest, error) {
	before := s.objects[w.Ref]
	operation := s.operation(before, w)
	if operation == "" {
		return nil, nil
	}
	written := w.Object
	if written == nil {
		written = before
	}
	kind := written.GroupVersionKind()
	r := &admissionv1.AdmissionRequest{
		UID: types.UID(written.GetResourceVersion()), Operation: operation,
		Kind:      metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Namespace: w.Ref.Namespace, Name: w.Ref.Name,
	}
	var errs [2]error
	if operation != admissionv1.Create {
		r.OldObject, errs[0] = s.raw(before)
	}
	if operation != admissionv1.Delete {
		r.Object, errs[1] = s.raw(w.Object)
	} else if s.isGarbage(before) {
		r.UserInfo.Username = garbageCollector
	}
	return r, errors.Join(errs[:]...)
}

// operation returns the operation of a write, "" if no server was asked about it.
func (s *state) operation(before *Object, w Write) admissionv1.Operation {
	switch {
	case !s.reads(w.Ref):
		return ""
	case before == nil && w.Object != nil:
		return when(w.Ref.PolicyKind() != kindNamespace, admissionv1.Create)
	case before == nil:
		return "" // nothing was deleted
	case w.Object == nil:
		return when(!isDeleting(before) && !s.isDropped(w.Ref), admissionv1.Delete)
	case isDeleting(w.Object) && !isDeleting(before):
		return admissionv1.Delete // with finalizers or in the foreground
	default:
		return when(changes(before, w.Object), admissionv1.Update)
	}
}

func when(asked bool, o admissionv1.Operation) admissionv1.Operation {
	if asked {
		return o
	}
	return ""
}

var kindNamespace = api.PolicyKind{Kind: gateway.KindNamespace}

// reads reports whether servers are asked about objects of this kind and namespace.
func (s *state) reads(ref api.Ref) bool {
	k := ref.PolicyKind()
	return ref.Namespace != server.Namespace &&
		(affects(k) || gateway.Known(k) || constraint.IsKind(k) || s.kinds.Of(k) != nil)
}

// changes reports whether an update changes more than the status and what the API server
// writes itself. The status of a CustomResourceDefinition counts; of a Namespace only
// labels and owners do.
func changes(before, after *Object) bool {
	switch refOf(after).PolicyKind() {
	case policykind.KindDefinition:
		return true
	case kindNamespace:
		return !maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}
	return !reflect.DeepEqual(essence(before), essence(after))
}

// essence returns the content of an object without its status and without what the API
// server writes itself.
func essence(o *Object) [2]map[string]any {
	content := maps.Clone(o.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(content, "metadata")
	delete(content, "status")
	delete(metadata, "resourceVersion")
	delete(metadata, "generation")
	return [2]map[string]any{content, metadata}
}

func isDeleting(o *Object) bool { return o.GetDeletionTimestamp() != nil }

// isDropped reports whether an object is deleted with its CustomResourceDefinition, which
// no server is asked about.
func (s *state) isDropped(ref api.Ref) bool {
	d := s.kinds.DefinitionOf(ref.PolicyKind())
	return d != nil && s.objects[d.Ref()].GetDeletionTimestamp() != nil
}

// isGarbage reports whether none of the owners of an object exists any more, or all are
// being deleted.
func (s *state) isGarbage(o *Object) bool {
	owners := o.GetOwnerReferences()
	for _, owner := range owners {
		if s.live[owner.UID] {
			return false
		}
	}
	return len(owners) > 0
}

// raw returns an object as the API server sends it.
func (s *state) raw(o *Object) (runtime.RawExtension, error) {
	content := o.Object
	if kind := s.kinds.Of(refOf(o).PolicyKind()); kind != nil {
		content = served(kind, o)
	}
	data, err := json.Marshal(content)
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encode %s: %w", refOf(o), err)
	}
	return runtime.RawExtension{Raw: data}, nil
}

// errUndecided is returned if there is no decision on a write.
var errUndecided = errors.New("no decision")

// review sends a request to the validating webhook.
func review(ctx context.Context, handler http.Handler, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: r,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	call := httptest.NewRequestWithContext(ctx, http.MethodPost, webhook.PathValidate+"?timeout=30s", bytes.NewReader(data))
	call.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, call)
	var answered admissionv1.AdmissionReview
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("%w: %d %s", errUndecided, answer.Code, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &answered); err != nil {
		return nil, fmt.Errorf("decode the response: %w", err)
	}
	if !answered.Response.Allowed && answered.Response.Result.Code == http.StatusTooManyRequests {
		return nil, fmt.Errorf("%w: %s", errUndecided, answered.Response.Result.Message)
	}
	return answered.Response, nil
}
