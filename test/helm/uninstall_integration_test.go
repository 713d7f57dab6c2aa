//go:build integration

package helm_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// The steps build on one another, as on a cluster.
func TestInstallUpgradeAndUninstall(t *testing.T) {
	c := boot(t)
	installed := c.install(t, load(t), clientCAValues.with(values{"networkPolicy.enabled": true, "priorityClass.create": true}))
	require.Len(t, installed.Hooks, 4, "a Job and its rights")
	c.writeWebhooks(t)

	t.Run("an upgrade restores removed rights", func(t *testing.T) {
		bindings := c.client.RbacV1().ClusterRoleBindings()
		require.NoError(t, bindings.Delete(t.Context(), "overrule-webhooks", metav1.DeleteOptions{}))
		c.upgrade(t, load(t), values{"enforcement": "warn"})
		_, err := bindings.Get(t.Context(), "overrule-webhooks", metav1.GetOptions{})
		require.NoError(t, err)
	})
	t.Run("a Job that fails stops the uninstall before the server goes", func(t *testing.T) {
		done := c.kubelet(t, func(*batchv1.Job) bool { return false })
		require.ErrorContains(t, c.uninstall(t, false), "overrule-uninstall")
		<-done
		assert.True(t, c.deployed(t), "the server keeps running")
		assert.Len(t, c.webhooks(t), 2, "and is called")
		assert.Equal(t, []string{"Job"}, c.hookLeftovers(t), "kept for troubleshooting, without its rights")
	})
	t.Run("the Job deletes the webhooks while the server runs", func(t *testing.T) {
		done := c.kubelet(t, func(job *batchv1.Job) bool {
			assert.Len(t, c.webhooks(t), 2)
			said := c.run(t, job)
			assert.Contains(t, said, "webhook configurations removed")
			assert.True(t, c.deployed(t))
			return true
		})
		require.NoError(t, c.uninstall(t, false))
		<-done
		assert.False(t, c.deployed(t))
		assert.Empty(t, c.webhooks(t))
		assert.Empty(t, c.hookLeftovers(t))
	})
	t.Run("a new installation adopts and updates the kept CRDs", func(t *testing.T) {
		c.upgradesCRDs(t)
	})
	t.Run("without the Job the webhooks are not deleted", func(t *testing.T) {
		c.writeWebhooks(t)
		require.NoError(t, c.uninstall(t, true))
		assert.Len(t, c.webhooks(t), 2)
	})
	t.Run("static webhooks belong to the release", func(t *testing.T) {
		c.deleteWebhooks(t)
		require.Empty(t, c.install(t, load(t), static).Hooks)
		assert.Len(t, c.webhooks(t), 2)
		require.NoError(t, c.uninstall(t, false))
		assert.Empty(t, c.webhooks(t))
	})
}

// kubelet waits for the Job, does what its pod does, and reports the result to
// the API server. The channel is closed after that.
func (c *cluster) kubelet(t *testing.T, do func(*batchv1.Job) (succeeds bool)) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	jobs := c.client.BatchV1().Jobs(namespace)
	now, err := jobs.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	w, err := jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Stop()
		for event := range w.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok || event.Type != watch.Added {
				continue
			}
			setJobResult(job, do(job))
			_, err := jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
			assert.NoError(t, err)
			return
		}
		assert.Fail(t, "there was no Job")
	}()
	return done
}

// setJobResult writes the status as the Job controller does.
func setJobResult(job *batchv1.Job, succeeded bool) {
	now := metav1.Now()
	conditions := []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	job.Status.StartTime = &now
	if succeeded {
		conditions = []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, condition := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", LastTransitionTime: now, LastProbeTime: now,
		})
	}
}

// run does what the container of the Job does, with the rights of its pod, which
// the namespace must admit.
func (c *cluster) run(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	pod := job.Spec.Template.Spec
	_, err := c.client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Labels: job.Spec.Template.Labels}, Spec: pod,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	assert.NoError(t, err)
	args := append(slices.Clone(pod.Containers[0].Args), "--kubeconfig="+c.kubeconfigFor(t, pod.ServiceAccountName))
	said, err := exec.CommandContext(t.Context(), "../../bin/overrule", args...).CombinedOutput()
	assert.NoError(t, err, `%s (to build it: "make build")`, said)
	return string(said)
}

// writeWebhooks does what a running server does.
func (c *cluster) writeWebhooks(t *testing.T) {
	t.Helper()
	hooks := c.client.AdmissionregistrationV1()
	name := metav1.ObjectMeta{Name: "overrule"}
	_, err := hooks.ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = hooks.MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (c *cluster) deleteWebhooks(t *testing.T) {
	t.Helper()
	hooks := c.client.AdmissionregistrationV1()
	require.NoError(t, hooks.ValidatingWebhookConfigurations().Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
	require.NoError(t, hooks.MutatingWebhookConfigurations().Delete(t.Context(), "overrule", metav1.DeleteOptions{}))
}

// webhooks returns the names of all webhook configurations.
func (c *cluster) webhooks(t *testing.T) (names []string) {
	t.Helper()
	hooks := c.client.AdmissionregistrationV1()
	validating, err := hooks.ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	assert.NoError(t, err)
	for _, v := range validating.Items {
		names = append(names, v.Name)
	}
	mutating, err := hooks.MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	assert.NoError(t, err)
	for _, m := range mutating.Items {
		names = append(names, m.Name)
	}
	return names
}

func (c *cluster) deployed(t *testing.T) bool {
	t.Helper()
	_, err := c.client.AppsV1().Deployments(namespace).Get(t.Context(), "overrule", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		assert.NoError(t, err)
	}
	return err == nil
}

// hookLeftovers returns the kinds of the objects named overrule-uninstall.
func (c *cluster) hookLeftovers(t *testing.T) (kinds []string) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	rbac := rbacv1.SchemeGroupVersion
	for kind, in := range map[string]dynamic.ResourceInterface{
		"Job":                client.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace),
		"ServiceAccount":     client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace),
		"ClusterRole":        client.Resource(rbac.WithResource("clusterroles")),
		"ClusterRoleBinding": client.Resource(rbac.WithResource("clusterrolebindings")),
	} {
		if _, err := in.Get(t.Context(), "overrule-uninstall", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			assert.NoError(t, err, kind)
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
