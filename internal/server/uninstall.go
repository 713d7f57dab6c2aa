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
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/internal/build"
)

const (
	// configurations is the name of both webhook configurations.
	webhookConfigName = "overrule"
	// webhooksBinding gives the server the right to write them (deploy/base).
	webhooksRoleBinding = "overrule-webhooks"
	// looks is how often in a row, a second apart, they have to be away.
	requiredChecks = 5
)

// uninstallWebhooks is the command that the Helm chart runs before it deletes
// anything: the configurations belong to no release, and while they are there
// without a server every write that they are called for is refused.
func uninstallWebhooks() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "uninstall-webhooks",
		Short: "Take the webhook configurations away for good, before the server goes",
		Long: `uninstall-webhooks takes away the server's right to write its webhook
configurations (ClusterRoleBinding overrule-webhooks), deletes both of them, and
looks on until they stay away. What is written from then on is not judged.`,
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
				return fmt.Errorf("make a client: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return (&remover{client: client, requiredChecks: requiredChecks, interval: time.Second, out: cmd.OutOrStdout()}).remove(ctx)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to try before giving up")
	return cmd
}

// remover deletes the webhook configurations until they stay away.
type remover struct {
	client         kubernetes.Interface
	requiredChecks int // in a row that have to find nothing
	interval       time.Duration
	out            io.Writer
	deletions      map[string]int // how often each was deleted; nil before the first
}

// remove takes the right first: a leader that has it puts back what is deleted.
// It may do so once more, by a write that is under way or was allowed by an API
// server that has not heard of the binding's end; so one look is not enough.
func (r *remover) remove(ctx context.Context) error {
	if _, err := r.delete(ctx, "ClusterRoleBinding "+webhooksRoleBinding, r.client.RbacV1().ClusterRoleBindings().Delete, webhooksRoleBinding); err != nil {
		return err
	}
	for absent := 0; ; {
		found, err := r.deleteBoth(ctx)
		if err != nil {
			return err
		}
		if absent++; found {
			absent = 0
		}
		if absent == r.requiredChecks {
			_, err := fmt.Fprintln(r.out, "the webhook configurations are gone: writes are not judged any more")
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the webhook configurations %s were deleted, and did not stay away in time: "+
				"something other than this installation may put them back; end that, and try again: %w", webhookConfigName, context.Cause(ctx))
		case <-time.After(r.interval):
		}
	}
}

// deleteBoth reports whether there was something to delete.
func (r *remover) deleteBoth(ctx context.Context) (bool, error) {
	hooks := r.client.AdmissionregistrationV1()
	validating, errValidating := r.delete(ctx, "ValidatingWebhookConfiguration "+webhookConfigName, hooks.ValidatingWebhookConfigurations().Delete, webhookConfigName)
	mutating, errMutating := r.delete(ctx, "MutatingWebhookConfiguration "+webhookConfigName, hooks.MutatingWebhookConfigurations().Delete, webhookConfigName)
	return validating || mutating, errors.Join(errValidating, errMutating)
}

// delete reports whether it was there.
func (r *remover) delete(ctx context.Context, what string, del func(context.Context, string, metav1.DeleteOptions) error, name string) (bool, error) {
	err := del(ctx, name, metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete %s: %w", what, err)
	}
	return true, r.report(what)
}

// tell says what was deleted, and that it was put back: each once, however
// often that goes on.
func (r *remover) report(what string) error {
	if r.deletions == nil {
		r.deletions = map[string]int{}
	}
	r.deletions[what]++
	var err error
	switch r.deletions[what] {
	case 1:
		_, err = fmt.Fprintln(r.out, "deleted", what)
	case 2:
		_, err = fmt.Fprintf(r.out, "%s was put back: deleting it until it stays away\n", what)
	}
	return err
}
