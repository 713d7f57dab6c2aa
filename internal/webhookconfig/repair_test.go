package webhookconfig

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// edit updates the validating configuration as another client.
func (o *harness) edit(t *testing.T, by string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
	t.Helper()
	hooks := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := hooks.Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	change(c)
	_, err = hooks.Update(t.Context(), c, metav1.UpdateOptions{FieldManager: by})
	require.NoError(t, err)
	o.changed <- struct{}{}
	synctest.Wait()
}

func (o *harness) repairs() (mutating, validating float64) {
	of := func(sort string) float64 { return testutil.ToFloat64(o.Metrics.repairs.WithLabelValues(sort)) }
	return of(typeMutating), of(typeValidating)
}

// withMetrics has a Reconciler count its repairs.
func withMetrics(r *Reconciler) { r.Metrics = NewMetrics(nil) }

func TestRepairNamesEditor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first", withMetrics)
		ignore := admissionregistrationv1.Fail
		o.edit(t, "eve", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks[0].FailurePolicy = &ignore })
		assert.Equal(t, admissionregistrationv1.Ignore, *o.validating(t).FailurePolicy)
		assert.Contains(t, o.log.String(), "validate.overrule.dev: failurePolicy is Fail, expected Ignore")
		assert.Contains(t, o.log.String(), "field manager eve (Update)")
		m, v := o.repairs()
		assert.Equal(t, []float64{0, 1}, []float64{m, v})
	})
}

// eventActions are the actions of Events.
type eventActions []string

func (a *eventActions) Eventf(_, _ runtime.Object, _, _, action, _ string, _ ...any) {
	*a = append(*a, action)
}

func TestRepairReportsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventActions
		o := startReconciler(t, "first", withMetrics, func(r *Reconciler) { r.Events = &events })
		o.edit(t, "eve", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Fail)
		})
		require.NoError(t, o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
		o.changed <- struct{}{}
		synctest.Wait()
		assert.Contains(t, o.log.String(), `"what"="deleted"`)
		assert.Contains(t, o.log.String(), "an unknown client")
		m, v := o.repairs()
		assert.Equal(t, []float64{1, 1}, []float64{m, v})
		assert.Equal(t, eventActions{"Repair", "Recreate"}, events, "Events of one action are counted, with the note of the first")
	})
}

// An apply with a resourceVersion creates a configuration that was deleted since the read.
func TestRepairReportsConcurrentDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first", withMetrics)
		hooks := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations()
		o.api.PrependReactor("get", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "overrule", UID: "before"}}, nil
		})
		require.NoError(t, hooks.Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
		o.changed <- struct{}{}
		synctest.Wait()
		assert.Contains(t, o.log.String(), `"what"="deleted"`)
		m, v := o.repairs()
		assert.Equal(t, []float64{1, 0}, []float64{m, v})
	})
}

// What a registrar changes itself, and what others add that is theirs, is no
// repair.
func TestOwnChangesAreNoRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first", withMetrics)
		o.authority.rotate("second")
		synctest.Wait()
		o.newKind("authpolicies")
		o.edit(t, "eve", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Labels["theirs"] = "too" })
		m, v := o.repairs()
		assert.Equal(t, []float64{0, 0}, []float64{m, v})
		c, err := o.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "too", c.Labels["theirs"])
	})
}

func TestConflictIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		o.locked(func() { o.fail = conflict() })
		o.authority.rotate("second")
		time.Sleep(time.Second)
		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first", "second"}, o.authority.publishedBundles())
		assert.NotContains(t, o.log.String(), `"error"`)
		assert.NoError(t, o.Problem())
	})
}

func TestProblemUntilWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := startReconciler(t, "first")
		assert.NoError(t, o.Problem())
		o.locked(func() { o.fail = errors.New("the API server is away") })
		o.authority.rotate("second")
		time.Sleep(time.Minute)
		require.ErrorContains(t, o.Problem(), "mutating webhook configuration overrule: the API server is away")
		o.locked(func() { o.fail = nil })
		time.Sleep(time.Minute)
		assert.NoError(t, o.Problem())
	})
}

func TestMissingRightAdvice(t *testing.T) {
	const todo = "apply deploy/base/rbac-webhooks.yaml (with Helm, upgrade the release) to restore this right; if it was removed on purpose, see docs/install.md, Break-glass"
	ours := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}
	for name, c := range map[string]struct {
		fail   error
		advice bool
	}{
		"on what it writes": {apierrors.NewForbidden(ours, "overrule", errors.New("no right")), true},
		"on something else": {apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "overrule-system", errors.New("no right")), false},
		"on nothing":        {errors.New("the API server is away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := startReconciler(t, "first")
				o.locked(func() { o.fail = c.fail })
				o.authority.rotate("second")
				time.Sleep(time.Minute)
				require.ErrorContains(t, o.Problem(), c.fail.Error())
				assert.Equal(t, c.advice, strings.HasSuffix(o.Problem().Error(), ": "+todo), o.Problem())
				o.locked(func() { o.fail = nil })
				time.Sleep(time.Minute)
				assert.NoError(t, o.Problem())
			})
		})
	}
}

func TestTerminatingNamespaceWritesNothing(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *harness){
		"it is gone": func(t *testing.T, o *harness) {
			require.NoError(t, o.api.CoreV1().Namespaces().Delete(t.Context(), "overrule-system", metav1.DeleteOptions{}))
		},
		"it is being deleted": func(t *testing.T, o *harness) {
			now := metav1.Now()
			_, err := o.api.CoreV1().Namespaces().Update(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "overrule-system", DeletionTimestamp: &now}}, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := startReconciler(t, "first")
				end(t, o)
				before := o.writeCount()
				o.authority.rotate("second")
				time.Sleep(time.Minute)
				assert.Equal(t, before, o.writeCount())
				assert.NotContains(t, o.log.String(), `"error"`)
			})
		})
	}
}

func TestFailedReadIsRetried(t *testing.T) {
	for resource, want := range map[string]string{
		"namespaces": "read namespace overrule-system: no answer",
		"services":   "read the Service of installation other/hooks, which owns the webhook configurations: no answer",
	} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := startReconciler(t, "first", withMetrics)
				o.edit(t, "eve", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {})
				o.api.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
				m, err := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
				require.NoError(t, err)
				m.Annotations[annotationInstallation] = "other/hooks"
				_, err = o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), m, metav1.UpdateOptions{})
				require.NoError(t, err)
				before := o.writeCount()
				o.changed <- struct{}{}
				time.Sleep(time.Minute)
				assert.Equal(t, before, o.writeCount())
				require.ErrorContains(t, o.Problem(), want)
			})
		})
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "overrule", errors.New("changed meanwhile"))
}
