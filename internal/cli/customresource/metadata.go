package customresource

import (
	"context"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// metadata is the metadata of a write, as the API server completes it.
type metadata struct {
	object, old metav1.ObjectMeta
	update      bool
	namespaced  bool
}

var metadataPath = field.NewPath("metadata")

func newMetadata(object, old map[string]any, namespace string, namespaced bool) metadata {
	out := metadata{object: metaOf(object), update: old != nil, namespaced: namespaced}
	if !namespaced {
		namespace = metav1.NamespaceNone
	}
	out.object.Namespace = namespace
	if out.object.Name == "" {
		out.object.Name = out.object.GenerateName // the API server appends random characters
	}
	if !out.update {
		return out
	}
	// a patch starts from the stored object
	out.old = metaOf(old)
	out.old.Namespace = namespace
	out.object.Generation = out.old.Generation
	out.object.UID = out.old.UID
	out.object.CreationTimestamp = out.old.CreationTimestamp
	out.object.DeletionTimestamp = out.old.DeletionTimestamp
	out.object.DeletionGracePeriodSeconds = out.old.DeletionGracePeriodSeconds
	out.old.ResourceVersion, out.object.ResourceVersion = "1", "1"
	return out
}

// metaOf returns the metadata of an object that was coerced.
func metaOf(object map[string]any) (out metav1.ObjectMeta) {
	if fields, ok := object["metadata"].(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &out) // coerce has decoded it already
	}
	return out
}

// validate validates the metadata as the strategy of custom resources does.
func (m metadata) validate(ctx context.Context) field.ErrorList {
	beta := utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta)
	if m.update {
		return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, &m.object, &m.old, m.namespaced, nil, metadataPath, beta)
	}
	return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, &m.object, nil, m.namespaced, apivalidation.NameIsDNSSubdomain, metadataPath, beta)
}

// validateCommon validates the metadata as the API server does for all resources: of an
// object that is created, only if nothing else is wrong.
func (m metadata) validateCommon(invalid bool) field.ErrorList {
	switch {
	case m.update:
		errs := apivalidation.ValidateObjectMetaAccessor(&m.object, m.namespaced, validatePathSegment, metadataPath)
		return append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(&m.object, &m.old, metadataPath)...)
	case invalid:
		return nil
	default:
		return apivalidation.ValidateObjectMetaAccessor(&m.object, m.namespaced, validatePathSegment, metadataPath)
	}
}

func validatePathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// validateScale validates the number of replicas of a kind with the subresource scale.
func (v *version) validateScale(object map[string]any) field.ErrorList {
	if v.Subresources == nil || v.Subresources.Scale == nil {
		return nil
	}
	path := v.Subresources.Scale.SpecReplicasPath
	replicas, _, err := unstructured.NestedInt64(object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	invalid := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, detail)}
	}
	switch {
	case err != nil:
		return invalid(err.Error())
	case replicas < 0:
		return invalid("should be a non-negative integer")
	case replicas > math.MaxInt32:
		return invalid(fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))
	default:
		return nil
	}
}
