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
	configurations = "overrule"
	// webhooksBinding gives the server the right to write them (deploy/base).
	webhooksBinding = "overrule-webhooks"
	// looks is how often in a row, a second apart, they have to be away.
	looks = 5
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
			if least := looks * time.Second; timeout < least {
				return fmt.Errorf("invalid --timeout: must be at least %s", least)
			}
			cfg, err := clusterOf(kubeconfig)
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
			return (&remover{client: client, looks: looks, pause: time.Second, out: cmd.OutOrStdout()}).remove(ctx)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to try before giving up")
	return cmd
}

// remover deletes the webhook configurations until they stay away.
type remover struct {
	client kubernetes.Interface
	looks  int // in a row that have to find nothing
	pause  time.Duration
	out    io.Writer
	gone   map[string]int // how often each was deleted; nil before the first
}

// remove takes the right first: a leader that has it puts back what is deleted.
// It may do so once more, by a write that is under way or was allowed by an API
// server that has not heard of the binding's end; so one look is not enough.
func (r *remover) remove(ctx context.Context) error {
	if _, err := r.delete(ctx, "ClusterRoleBinding "+webhooksBinding, r.client.RbacV1().ClusterRoleBindings().Delete, webhooksBinding); err != nil {
		return err
	}
	for clean := 0; ; {
		found, err := r.deleteBoth(ctx)
		if err != nil {
			return err
		}
		if clean++; found {
			clean = 0
		}
		if clean == r.looks {
			_, err := fmt.Fprintln(r.out, "the webhook configurations are gone: writes are not judged any more")
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the webhook configurations %s were deleted, and did not stay away in time: "+
				"something other than this installation may put them back; end that, and try again: %w", configurations, context.Cause(ctx))
		case <-time.After(r.pause):
		}
	}
}

// deleteBoth reports whether there was something to delete.
func (r *remover) deleteBoth(ctx context.Context) (bool, error) {
	hooks := r.client.AdmissionregistrationV1()
	validating, errValidating := r.delete(ctx, "ValidatingWebhookConfiguration "+configurations, hooks.ValidatingWebhookConfigurations().Delete, configurations)
	mutating, errMutating := r.delete(ctx, "MutatingWebhookConfiguration "+configurations, hooks.MutatingWebhookConfigurations().Delete, configurations)
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
	return true, r.tell(what)
}

// tell says what was deleted, and that it was put back: each once, however
// often that goes on.
func (r *remover) tell(what string) error {
	if r.gone == nil {
		r.gone = map[string]int{}
	}
	r.gone[what]++
	var err error
	switch r.gone[what] {
	case 1:
		_, err = fmt.Fprintln(r.out, "deleted", what)
	case 2:
		_, err = fmt.Fprintf(r.out, "%s was put back: deleting it until it stays away\n", what)
	}
	return err
}
