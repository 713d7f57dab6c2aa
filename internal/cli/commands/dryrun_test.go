package commands

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestFindingsOfDenials(t *testing.T) {
	reasons, err := denialReasons(errors.New("admission webhook \"validate.overrule.dev\" denied the request: OverrideEvaded: a would not apply\nConstraintViolated: rules.a: Invalid value: 1: no"))
	require.NoError(t, err)
	assert.Equal(t, []api.Reason{
		{Code: api.ReasonOverrideEvaded, Message: "a would not apply"}, {Code: api.ReasonConstraintViolated, Message: "rules.a: Invalid value: 1: no"},
	}, reasons)
	reasons, err = denialReasons(errors.New(`admission webhook "services.validate.overrule.dev" denied the request: too many`))
	require.NoError(t, err)
	assert.Equal(t, []api.Reason{{Code: api.CodeWarning, Message: "too many"}}, reasons)
	for _, other := range []error{errors.New("connection refused"), errors.New(`admission webhook "other.example.com" denied the request: NotOurs: x`)} {
		reasons, err = denialReasons(other)
		assert.Empty(t, reasons)
		assert.Equal(t, other, err, "it is no verdict")
	}
	reasons, err = denialReasons(nil)
	assert.Empty(t, reasons)
	assert.NoError(t, err)

	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, "own", field.ErrorList{
		field.Invalid(field.NewPath("spec", "when"), "s3cret", "must be a boolean"), field.Required(field.NewPath("spec", "targetRef"), ""),
	})
	reasons, err = denialReasons(invalid)
	require.NoError(t, err)
	assert.Equal(t, []api.Reason{
		{Code: api.ReasonSchemaInvalid, Message: `spec.when: Invalid value: "s3cret": must be a boolean`},
		{Code: api.ReasonSchemaInvalid, Message: "spec.targetRef: Required value"},
	}, reasons, "as for a change that is evaluated here")
	invalid.ErrStatus.Details = nil
	reasons, err = denialReasons(invalid)
	require.NoError(t, err)
	require.Len(t, reasons, 1)
	assert.Contains(t, reasons[0].Message, "s3cret")
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
	r := &reviewed{namespace: "app", spec: api.ReviewSpec{Object: api.ReviewObject{Kind: "Service", Name: "x"}}}
	denial := func(message string) error {
		return errors.New(`admission webhook "review.overrule.dev" denied the request: ` + message)
	}
	tests := map[string]struct {
		err, is error
		text    string
	}{
		"what is not found is reported as such": {denial("Service app/x not found, or you are not allowed to get it"), errNotFound, "Service app/x not found, or you are not allowed to get it"},
		"another denial is its message":         {denial("spec.rule: Invalid value"), nil, "spec.rule: Invalid value"},
		"the webhook does not answer":           {errors.New(`failed calling webhook "review.overrule.dev": Post "https://x/review/s3cret?timeout=3s": EOF`), errNoAnswer, `failed calling webhook "review.overrule.dev": Post "https://x/review/…?timeout=3s": EOF`},
		"there is no webhook":                   {errors.New(`ValidatingAdmissionPolicy 'overrule-reviews' with binding 'overrule-reviews' denied request: Overrule did not answer`), errNoAnswer, "Overrule did not answer"},
		"the kind is not installed":             {apierrors.NewNotFound(schema.GroupResource{}, ""), errNoReviews, "or it is not installed"},
		"the user may not ask":                  {apierrors.NewForbidden(reviewResource.GroupResource(), "q", errors.New("no")), nil, "the role view, or overrule-reviews, in namespace app"},
		"anything else":                         {errors.New("connection refused"), nil, "ask Overrule about Service app/x: connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.askError(test.err)
			assert.ErrorContains(t, got, test.text)
			assert.NotContains(t, got.Error(), "s3cret")
			for _, is := range []error{errNotFound, errNoAnswer, errNoReviews} {
				assert.Equal(t, errors.Is(test.is, is), errors.Is(got, is), "%v", is)
			}
		})
	}
}
