package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Rights decides which users are allowed to remove or change overrides: those with the
// verb override on the policy's resource in its namespace. It is safe for concurrent use.
type Rights interface {
	// MayOverride reports whether a user is allowed to. It returns an error if that
	// cannot be determined now.
	MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error)
	// Check returns the command with which users can check their permission.
	Check(policy api.Ref) string
}

// ErrRights is returned if the permission of a user cannot be determined.
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
	if r.ev.guard.Rights != nil && r.ev.deletion.reason == "" {
		var err error
		if may, err = r.ev.guard.Rights.MayOverride(r.ctx, r.ev.change.User, policy); err != nil {
			return false, fmt.Errorf("%w: %w", ErrRights, err)
		}
	}
	r.known[policy] = may
	return may, nil
}

// hasSubstitute reports whether an equal override that is as high takes the place of one
// that is lost: one that the writer is not allowed to remove next.
func (r *authorizer) hasSubstitute(t *overrideLoss) (bool, error) {
	for _, p := range t.substitutes {
		permitted, err := r.mayOverride(t.ref(p))
		if err != nil || !permitted {
			return !permitted && err == nil, err
		}
	}
	return false, nil
}

// allows reports whether the writer is allowed to do what a finding denies.
func (r *authorizer) allows(f Finding) (bool, error) {
	if r == nil || f.Action != api.Deny {
		return false, nil
	}
	return r.mayOverride(*f.Policy)
}

// permittedAdvice is the advice to writers who are allowed to override the policy.
const permittedAdvice = "you are allowed to do that"

// checkCommand returns the command that shows whether one is allowed to remove overrides.
func (ev *evaluation) checkCommand(policy api.Ref) string {
	if ev.guard.Rights == nil {
		return fmt.Sprintf("kubectl auth can-i override %s -n %s", strings.ToLower(policy.Kind), policy.Namespace)
	}
	return ev.guard.Rights.Check(policy)
}
