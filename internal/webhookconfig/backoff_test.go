package webhookconfig

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// editRepeatedly writes a selector of its own whenever it is gone, for a time, and
// returns how often that was.
func (o *harness) editRepeatedly(t *testing.T, during time.Duration) (edits int) {
	t.Helper()
	hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		if len(c.Webhooks[0].NamespaceSelector.MatchExpressions) > 1 {
			continue
		}
		c.Webhooks[0].NamespaceSelector.MatchExpressions = append(c.Webhooks[0].NamespaceSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
		_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: "enforcer"})
		require.NoError(t, err)
		edits++
		o.watches[0].Modify(c)
		synctest.Wait()
	}
	return edits
}

func (o *harness) selectorTerms(t *testing.T) int {
	return len(o.validating(t).NamespaceSelector.MatchExpressions)
}

func TestRepeatedEditBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first", withMetrics)
		o.editRepeatedly(t, 50*time.Millisecond)
		assert.Equal(t, 1, o.selectorTerms(t), "what is done once is undone at once")

		edits := o.editRepeatedly(t, 10*time.Minute)
		assert.Greater(t, edits, 10, "but not given up: each minute")
		assert.Less(t, edits, 20)
		_, repairs := o.repairs()
		assert.InDelta(t, edits, repairs, 1)

		require.Equal(t, 2, o.selectorTerms(t))
		fail := admissionregistrationv1.Fail
		c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		c.Webhooks[0].FailurePolicy = &fail
		_, err = o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), c, metav1.UpdateOptions{FieldManager: "eve"})
		require.NoError(t, err)
		time.Sleep(recheckInterval + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, admissionregistrationv1.Ignore, *o.validating(t).FailurePolicy, "anything else does not wait")

		o.editRepeatedly(t, time.Second)
		require.Equal(t, 2, o.selectorTerms(t))
		o.authority.rotate("second")
		synctest.Wait()
		assert.Equal(t, "second", string(o.validating(t).ClientConfig.CABundle), "nor does what is written for a reason of its own")

		time.Sleep(10 * time.Minute)
		assert.Equal(t, 1, o.selectorTerms(t))
		o.editRepeatedly(t, 50*time.Millisecond)
		assert.Equal(t, 1, o.selectorTerms(t), "and a fight that is over is forgotten")
	})
}

func TestRepeatedConflictIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		o.locked(func() { o.fail = conflict() })
		hooks := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations()
		c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		c.Webhooks[0].TimeoutSeconds = new(int32(30))
		_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: "eve"})
		require.NoError(t, err)
		before := o.writeCount()
		o.authority.rotate("second")
		for range 600 {
			o.watches[0].Modify(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			time.Sleep(100 * time.Millisecond)
		}
		assert.Less(t, o.writeCount()-before, 20, "it does not hurry")
		require.ErrorContains(t, o.Problem(), "another client keeps updating the webhook configurations")
		require.ErrorContains(t, o.Problem(), "field manager eve (Update) also writes it")
		assert.Contains(t, o.log.String(), "another client keeps updating the webhook configurations")
		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.NoError(t, o.Problem())
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
	})
}
