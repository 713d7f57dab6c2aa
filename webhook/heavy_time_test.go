package webhook

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/heavy"
)

// asConfigured is the query with which the API server calls.
var asConfigured = fmt.Sprintf("?timeout=%ds", timeoutSeconds)

// Whatever is written, there is an answer within the time that the webhook
// configurations give, and the judge does not go on for ever after it. That the
// answer is in time is the server's own deadline; none is measured here.
func TestAHeavyWriteIsAnsweredInTime(t *testing.T) {
	for _, c := range heavy.Cases() {
		if !c.Representative {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			objects, write, err := c.Build(c.Full)
			require.NoError(t, err)
			review, err := write.Review(uid)
			require.NoError(t, err)
			d := heavyDoors(objects, c.BlastRadius)

			a := answered(t, d.post(t, PathMutate+asConfigured, review))
			assert.True(t, a.Allowed, "the mutating door denies nothing")
			assertFree(t, d)
			a = answered(t, d.post(t, PathValidate+asConfigured, review))
			assertFree(t, d)
			if !isTooMuch(a) {
				assertWanted(t, c.Want(c.Full), a)
				return
			}
			assertSaysWhat(t, said(t, a))
		})
	}
}

// isTooMuch reports whether a write was denied for what judging it takes.
func isTooMuch(a *admissionv1.AdmissionResponse) bool {
	return !a.Allowed && a.AuditAnnotations["denied"] == string(api.ReasonTooMuch)
}

// tooMuchSays is what a denial has to tell: how far the judge came, or, where it
// noticed too late, that it was the time.
var tooMuchSays = regexp.MustCompile(`^TooMuch: .*it ended (at path \d+: |before the first path)|takes longer than a call may`)

func assertSaysWhat(t *testing.T, message string) {
	t.Helper()
	assert.Regexp(t, tooMuchSays, message)
}

// assertFree waits for the only place at which is judged. It is free once the
// judge has ended.
func assertFree(t *testing.T, d *doors) {
	t.Helper()
	trifle, err := heavy.Trivial().Review(uid)
	require.NoError(t, err)
	a := answered(t, d.post(t, PathValidate+"?timeout=60s", trifle))
	require.True(t, a.Allowed, "the judge goes on for ever: %v", a.Result)
}
