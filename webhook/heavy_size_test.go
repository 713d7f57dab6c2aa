package webhook

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// noRights denies the right to remove overrides.
type noRights struct{}

func (noRights) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return false, nil
}

func (noRights) Check(api.Ref) string { return "check" }

// heavyServer is a server as in production, with one evaluation slot.
func heavyServer(s *snapshot.Store, blastRadius int, e ...guard.Enforcement) *testServer {
	return &testServer{Server: New(Options{
		Enforcement: append(e, guard.EnforceDeny)[0],
		Store:       s, Guard: &guard.Guard{Engine: effective.NewEngine(), Permissions: noRights{}, BlastRadius: blastRadius, MatchLimit: guard.DefaultMatchLimit},
		InFlight: inflight.New(s, inflight.Options{}), MaxObject: DefaultBodyLimit, MaxConcurrent: 1, Log: logr.Discard(),
	})}
}

func TestHeavyWriteIsEvaluated(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Small)
			review := write.Review(t, uid)
			d := heavyServer(objects.Store, c.BlastRadius)

			a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
			assertWanted(t, c.Want(c.Small), a)
			a = responseOf(t, d.post(t, PathMutate+"?timeout=100s", review))
			assert.True(t, a.Allowed)
		})
	}
}

// assertWanted checks an evaluation that was completed.
func assertWanted(t *testing.T, want worlds.Want, a *admissionv1.AdmissionResponse) {
	t.Helper()
	if want.Denied == "" {
		require.True(t, a.Allowed, "%v", a.Result)
		assert.Contains(t, strings.Join(a.Warnings, "\n"), want.Says)
		return
	}
	message := said(t, a)
	assert.True(t, strings.HasPrefix(message, string(want.Denied)+": "), message)
	assert.Contains(t, message, want.Says)
}

// Without time there is an answer, too: a denial, unless nothing is denied.
func TestHeavyWriteWithoutTimeIsDenied(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Small)
			review := write.Review(t, uid)

			a := responseOf(t, heavyServer(objects.Store, c.BlastRadius).post(t, PathValidate+"?timeout=1ns", review))
			assert.NotEmpty(t, said(t, a))
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius, guard.EnforceWarn).post(t, PathValidate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.NotEmpty(t, a.Warnings)
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius, guard.EnforceAudit).post(t, PathValidate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.Empty(t, a.Warnings)
			assert.NotEmpty(t, a.AuditAnnotations["would-deny"])
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius).post(t, PathMutate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.Empty(t, a.Patch)
		})
	}
}
