package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	deletedBinding      = "deleted ClusterRoleBinding overrule-webhooks\n"
	deletedValidating   = "deleted ValidatingWebhookConfiguration overrule\n"
	validatingRecreated = "ValidatingWebhookConfiguration overrule was recreated; deleting it again\n"
	deletedMutating     = "deleted MutatingWebhookConfiguration overrule\n"
	allRemoved          = "webhook configurations removed: writes are no longer evaluated\n"
)

var validatingResource = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")

func installed() []runtime.Object {
	return []runtime.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "overrule-webhooks"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "others"}},
		validatingConfiguration("overrule"), validatingConfiguration("others"),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "overrule"}},
	}
}

func validatingConfiguration(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestUninstallRemovesTheRoleBindingFirst(t *testing.T) {
	for name, c := range map[string]struct {
		objects []runtime.Object
		back    int // how often the leader still recreates one
		want    string
	}{
		"an installation":         {objects: installed(), want: deletedBinding + deletedValidating + deletedMutating + allRemoved},
		"with a leader that lags": {objects: installed(), back: 1, want: deletedBinding + deletedValidating + deletedMutating + validatingRecreated + allRemoved},
		"with one that lags far":  {objects: installed(), back: 5, want: deletedBinding + deletedValidating + deletedMutating + validatingRecreated + allRemoved},
		"a partly removed one":    {objects: installed()[2:4], want: deletedValidating + allRemoved},
		"none":                    {want: allRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(c.objects...)
			recreateConfiguration(client, c.back)
			var output strings.Builder
			require.NoError(t, (&remover{client: client, requiredChecks: 3, interval: time.Millisecond, out: &output}).remove(t.Context()))
			assert.Equal(t, c.want, output.String())
			for _, left := range client.Actions() {
				assert.NotEqual(t, "others", left.(clienttesting.DeleteAction).GetName(), "other configurations stay")
			}
		})
	}
}

// recreateConfiguration recreates the validating configuration after each of so many
// deletions; a negative number never ends.
func recreateConfiguration(client *fake.Clientset, times int) {
	client.PrependReactor("delete", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		if times != 0 {
			times--
			_ = client.Tracker().Create(validatingResource, validatingConfiguration("overrule"), "")
		}
		return false, nil, nil
	})
}

func TestUninstallReportsRecreatedWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(installed()...)
		recreateConfiguration(client, -1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var output strings.Builder
		err := (&remover{client: client, requiredChecks: 3, interval: time.Millisecond, out: &output}).remove(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "webhook configurations overrule did not stay deleted")
		assert.NotContains(t, output.String(), allRemoved)
		assert.LessOrEqual(t, strings.Count(output.String(), "ValidatingWebhookConfiguration"), 2, "it is reported only once")
	})
}

func TestUninstallReportsDeleteErrors(t *testing.T) {
	for resource, want := range map[string]string{
		"clusterrolebindings":             "delete ClusterRoleBinding overrule-webhooks: ",
		"validatingwebhookconfigurations": "delete ValidatingWebhookConfiguration overrule: ",
		"mutatingwebhookconfigurations":   "delete MutatingWebhookConfiguration overrule: ",
	} {
		t.Run(resource, func(t *testing.T) {
			client := fake.NewClientset(installed()...)
			client.PrependReactor("delete", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
				name := a.(clienttesting.DeleteAction).GetName()
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New("no right"))
			})
			var output strings.Builder
			err := (&remover{client: client, requiredChecks: 3, interval: time.Millisecond, out: &output}).remove(t.Context())
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, want)
			assert.NotContains(t, output.String(), allRemoved)
		})
	}
}

func TestUninstallReportsUsageErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an invalid kubeconfig": {[]string{"uninstall-webhooks", "--kubeconfig", broken}, "read kubeconfig: "},
		"an argument":           {[]string{"uninstall-webhooks", "now"}, `unknown command "now" for "overrule uninstall-webhooks"`},
		"another command":       {[]string{"uninstall"}, `unknown command "uninstall" for "overrule"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand()
			cmd.SetArgs(c.args)
			require.ErrorContains(t, cmd.ExecuteContext(t.Context()), c.want)
		})
	}
}
