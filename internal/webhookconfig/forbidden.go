package webhookconfig

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// giveBack says what to do about a right that is missing: break-glass begins with
// taking it away.
const restoreRight = "apply deploy/base/rbac-webhooks.yaml (with Helm, upgrade the release) to give that right back; " +
	"if it was taken away on purpose, see docs/install.md, Break-glass"

// mayNot reports whether an error is that of a right on webhook configurations
// that is missing.
func lacksRight(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) {
		return false
	}
	details := status.ErrStatus.Details
	return details != nil && details.Group == admissionregistrationv1.GroupName
}
