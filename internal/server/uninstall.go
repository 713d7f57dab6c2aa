package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/internal/build"
)

const (
	// webhookConfigName is the name of both webhook configurations.
	webhookConfigName = "overrule"
	// webhooksRoleBinding is the ClusterRoleBinding that allows the server to write
	// them (deploy/base).
	webhooksRoleBinding = "overrule-webhooks"
	// requiredChecks is how many checks in a row, a second apart, must not find them.
	requiredChecks = 5
)

// uninstallWebhooks returns the command that the Helm chart runs before it deletes
// anything: the webhook configurations do not belong to the release, and without a
// server they reject every write that they select.
func uninstallWebhooks() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "uninstall-webhooks",
		Short: "Remove the webhook configurations before the server is uninstalled",
		Long: `uninstall-webhooks deletes the ClusterRoleBinding overrule-webhooks, which allows
the server to write its webhook configurations. Then it deletes both of them, and
checks that they are not recreated. Writes are not evaluated any more after that.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if minimum := requiredChecks * time.Second; timeout < minimum {
				return fmt.Errorf("invalid --timeout: must be at least %s", minimum)
			}
			cfg, err := loadRESTConfig(kubeconfig)
			if err != nil {
				return err
			}
			cfg.UserAgent = "overrule/" + build.Read().Version
			client, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				return fmt.Errorf("create client: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return (&remover{client: client, requiredChecks: requiredChecks, interval: time.Second, out: cmd.OutOrStdout()}).remove(ctx)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait until the webhook configurations are removed")
	return cmd
}

// remover deletes the webhook configurations until they are not recreated.
type remover struct {
	client         kubernetes.Interface
	requiredChecks int // in a row that must find nothing
	interval       time.Duration
	out            io.Writer
	deletions      map[string]int // of each object
}

// remove deletes the ClusterRoleBinding first: a leader with that permission
// recreates the configurations. It may do so once more, with a request that is in
// flight or that an API server authorized before it observed the deletion of the
// binding; so one check is not enough.
func (r *remover) remove(ctx context.Context) error {
	r.deletions = map[string]int{}
	hooks, absent := r.client.AdmissionregistrationV1(), 0
	if _, err := r.delete(ctx, "ClusterRoleBinding", webhooksRoleBinding, r.client.RbacV1().ClusterRoleBindings().Delete); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, r.interval, true, func(ctx context.Context) (bool, error) {
		validating, errValidating := r.delete(ctx, "ValidatingWebhookConfiguration", webhookConfigName, hooks.ValidatingWebhookConfigurations().Delete)
		mutating, errMutating := r.delete(ctx, "MutatingWebhookConfiguration", webhookConfigName, hooks.MutatingWebhookConfigurations().Delete)
		if absent++; validating || mutating {
			absent = 0
		}
		return absent == r.requiredChecks, errors.Join(errValidating, errMutating)
	})
	switch {
	case wait.Interrupted(err):
		return fmt.Errorf("webhook configurations %s did not stay deleted: "+
			"another client may recreate them, such as a GitOps controller; stop it and try again: %w", webhookConfigName, context.Cause(ctx))
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(r.out, "webhook configurations removed: writes are no longer evaluated")
	return err
}

// delete reports whether the object existed. It prints what was deleted, and what was
// recreated: each once, however often that repeats.
func (r *remover) delete(ctx context.Context, kind, name string, del func(context.Context, string, metav1.DeleteOptions) error) (existed bool, err error) {
	what := kind + " " + name
	if err = del(ctx, name, metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", what, err)
	}
	switch r.deletions[what]++; r.deletions[what] {
	case 1:
		_, err = fmt.Fprintln(r.out, "deleted", what)
	case 2:
		_, err = fmt.Fprintf(r.out, "%s was recreated; deleting it again\n", what)
	}
	return true, err
}
