package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Rights tells who may remove or change overrides: those allowed the verb
// override on the policy's resource in its namespace. It is safe for concurrent
// use.
type Rights interface {
	// MayOverride asks for a user. An error tells that nobody can say now.
	MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error)
	// Check returns the command with which users can see whether they may.
	Check(policy api.Ref) string
}

// ErrRights tells that nobody could say whether a user may remove an override.
var ErrRights = errors.New("cannot determine whether the user is allowed to remove overrides")

// authorizer asks once for each policy whether the writer is allowed to override it.
type authorizer struct {
	ev    *evaluation
	ctx   context.Context //nolint:containedctx // of one evaluation
	known map[api.Ref]bool
}

func (r *authorizer) mayOverride(policy api.Ref) (bool, error) {
	if may, ok := r.known[policy]; ok {
		return may, nil
	}
	if err := r.ev.findSystemDeletion(r.ctx); err != nil {
		return false, err
	}
	may := false
	if r.ev.guard.Rights != nil && r.ev.systemReason == "" {
		var err error
		if may, err = r.ev.guard.Rights.MayOverride(r.ctx, r.ev.change.User, policy); err != nil {
			return false, fmt.Errorf("%w: %w", ErrRights, err)
		}
	}
	r.known[policy] = may
	return may, nil
}

// hasSubstitute reports whether an equal override that is as high stands in for one
// that is lost: one that the writer could not take away next.
func (r *authorizer) hasSubstitute(t *overrideLoss) (bool, error) {
	for _, p := range t.substitutes {
		lift, err := r.mayOverride(t.ref(p))
		if err != nil || !lift {
			return !lift && err == nil, err
		}
	}
	return false, nil
}

// allows reports whether the writer may do what a finding denies.
func (r *authorizer) allows(f Finding) (bool, error) {
	if r == nil || f.Action != api.Deny {
		return false, nil
	}
	return r.mayOverride(*f.Policy)
}

// permittedAdvice is the advice to those who may override the policy.
const permittedAdvice = "you are allowed to do that"

// checkCommand returns the command that shows whether one may remove overrides.
func (ev *evaluation) checkCommand(policy api.Ref) string {
	if ev.guard.Rights == nil {
		return fmt.Sprintf("kubectl auth can-i override %s -n %s", strings.ToLower(policy.Kind), policy.Namespace)
	}
	return ev.guard.Rights.Check(policy)
}
