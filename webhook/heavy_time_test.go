package webhook

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

// asConfigured is the query with which the API server calls.
var asConfigured = fmt.Sprintf("?timeout=%s", DefaultTimeout)

// Whatever is written, there is an answer within the time that the webhook
// configurations give, and the evaluation ends soon after it. That the
// answer is in time is the server's own deadline; none is measured here.
func TestHeavyWriteIsAnsweredInTime(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		if !c.Representative {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Full)
			review := write.Review(t, uid)
			d := heavyServer(objects.Store, c.BlastRadius)

			a := responseOf(t, d.post(t, PathMutate+asConfigured, review))
			assert.True(t, a.Allowed, "the mutating webhook denies nothing")
			assertFree(t, d)
			a = responseOf(t, d.post(t, PathValidate+asConfigured, review))
			assertFree(t, d)
			if !isTooMuch(a) {
				assertWanted(t, c.Want(c.Full), a)
				return
			}
			assertSaysWhat(t, said(t, a))
		})
	}
}

// isTooMuch reports whether a write was denied for the cost of its evaluation.
func isTooMuch(a *admissionv1.AdmissionResponse) bool {
	return !a.Allowed && a.AuditAnnotations["denied"] == string(api.ReasonTooMuch)
}

// tooMuchSays is what a denial has to say: how far the evaluation came, or, where it
// noticed too late, that it was the time.
var tooMuchSays = regexp.MustCompile(`^TooMuch: .*it stopped (at path \d+: |before the first path)|exceeds the webhook timeout`)

func assertSaysWhat(t *testing.T, message string) {
	t.Helper()
	assert.Regexp(t, tooMuchSays, message)
}

// assertFree waits for the only slot. It is free once the evaluation has ended.
func assertFree(t *testing.T, d *testServer) {
	t.Helper()
	a := responseOf(t, d.post(t, PathValidate+"?timeout=60s", worlds.Trivial().Review(t, uid)))
	require.True(t, a.Allowed, "the evaluation does not end: %v", a.Result)
}
