package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Permissions decides which users are allowed to remove or change overrides: those with the
// verb override on the policy's resource in its namespace. It is safe for concurrent use.
type Permissions interface {
	// MayOverride reports whether a user is allowed to. It returns an error if that
	// cannot be determined now.
	MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error)
	// Check returns the command with which users can check their permission.
	Check(policy api.Ref) string
}

// ErrPermissions is returned if the permission of a user cannot be determined.
var ErrPermissions = errors.New("cannot determine whether the user is allowed to remove overrides")

// authorizer asks once for each policy whether the writer is allowed to override it.
type authorizer struct {
	ev    *write
	ctx   context.Context //nolint:containedctx // of one evaluation
	known map[api.Ref]bool
}

func (a *authorizer) mayOverride(policy api.Ref) (bool, error) {
	if may, ok := a.known[policy]; ok {
		return may, nil
	}
	if err := a.ev.findSystemDeletion(a.ctx); err != nil {
		return false, err
	}
	may := false
	if a.ev.guard.Permissions != nil && a.ev.deletion.reason == "" {
		if err := a.ev.budget.Wait(func() (err error) {
			may, err = a.ev.guard.Permissions.MayOverride(a.ctx, a.ev.change.User, policy)
			return err
		}); err != nil {
			return false, fmt.Errorf("%w: %w", ErrPermissions, err)
		}
	}
	a.known[policy] = may
	return may, nil
}

// allows reports whether the writer is allowed to do what a finding denies.
func (a *authorizer) allows(f Finding) (bool, error) {
	if a == nil || f.Action != api.Deny {
		return false, nil
	}
	return a.mayOverride(f.Policy)
}

// permittedAdvice is the advice to writers who are allowed to override the policy.
const permittedAdvice = "you are allowed to do that"

// checkCommand returns the command that shows whether one is allowed to remove overrides.
func (ev *write) checkCommand(policy api.Ref) string {
	if ev.guard.Permissions == nil {
		return fmt.Sprintf("kubectl auth can-i override %s -n %s", strings.ToLower(policy.Kind), policy.Namespace)
	}
	return ev.guard.Permissions.Check(policy)
}
