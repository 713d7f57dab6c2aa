package commands

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

// denial returns the error of a denial by Overrule.
func denial(reasons ...api.Reason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "denied", Details: api.DenialDetails(reasons...),
	}}
}

func TestFindingsOfDenials(t *testing.T) {
	found := []api.Reason{
		{Code: api.ReasonOverrideEvaded, Message: "a would not apply"}, {Code: api.ReasonConstraintViolated, Field: "spec.rules.a", Message: "rules.a: Invalid value: 1: no"},
	}
	assert.Equal(t, found, denialReasons(denial(found...)))
	for _, other := range []error{
		nil, errors.New("connection refused"), errors.New(`admission webhook "other.example.com" denied the request: NotOurs: x`),
		apierrors.NewForbidden(reviewResource.GroupResource(), "q", errors.New("no")),
	} {
		assert.Empty(t, denialReasons(other), "it is no verdict")
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, "own", field.ErrorList{
		field.Invalid(field.NewPath("spec", "when"), "s3cret", "must be a boolean"), field.Required(field.NewPath("spec", "targetRef"), ""),
	})
	assert.Equal(t, []api.Reason{
		{Code: api.ReasonSchemaInvalid, Field: "spec.when", Message: `spec.when: Invalid value: "s3cret": must be a boolean`},
		{Code: api.ReasonSchemaInvalid, Field: "spec.targetRef", Message: "spec.targetRef: Required value"},
	}, denialReasons(invalid), "as for a change that is evaluated here")
}

func TestErrorsOfDryRunsWithoutValues(t *testing.T) {
	for want, err := range map[string]error{
		"the API server returns Forbidden; details are omitted": apierrors.NewForbidden(reviewResource.GroupResource(), "q", errors.New("s3cret")),
		"it failed; details are omitted":                        errors.New("s3cret"),
	} {
		got := withoutDetails(err)
		assert.ErrorContains(t, got, want)
		assert.NotContains(t, got.Error(), "s3cret")
	}
}

func TestErrorsOfReviews(t *testing.T) {
	r := &review{namespace: "app", spec: api.ReviewSpec{Object: api.ReviewObject{Kind: "Service", Name: "x"}}}
	tests := map[string]struct {
		err, is error
		text    string
	}{
		"what is not found is reported as such": {denial(api.Reason{Code: api.DenialNotFound, Message: "Service app/x not found, or you are not allowed to get it"}), errNotFound, "Service app/x not found, or you are not allowed to get it"},
		"another denial is its message":         {denial(api.Reason{Code: api.ReasonInvalid, Message: "spec.rule: Invalid value"}), nil, "spec.rule: Invalid value"},
		"the webhook does not answer":           {errors.New(`failed calling webhook "review.overrule.dev": Post "https://x/review/s3cret?timeout=3s": EOF`), errNoAnswer, `failed calling webhook "review.overrule.dev": Post "https://x/review/…?timeout=3s": EOF`},
		"there is no webhook":                   {errors.New(`ValidatingAdmissionPolicy 'overrule-reviews' with binding 'overrule-reviews' denied request: Overrule did not answer`), errNoAnswer, "Overrule did not answer"},
		"the kind is not installed":             {apierrors.NewNotFound(schema.GroupResource{}, ""), errNoReviews, "or it is not installed"},
		"the user may not ask":                  {apierrors.NewForbidden(reviewResource.GroupResource(), "q", errors.New("no")), nil, "the role view, or overrule-reviews, in namespace app"},
		"anything else":                         {errors.New("connection refused"), nil, "ask Overrule about Service app/x: connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.answerError(test.err)
			assert.ErrorContains(t, got, test.text)
			assert.NotContains(t, got.Error(), "s3cret")
			for _, is := range []error{errNotFound, errNoAnswer, errNoReviews} {
				assert.Equal(t, errors.Is(test.is, is), errors.Is(got, is), "%v", is)
			}
		})
	}
}
