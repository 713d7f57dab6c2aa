package webhookconfig

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
)

// annotationInstallation names the installation that owns a configuration, as
// NAMESPACE/SERVICE. Two installations would overwrite each other for ever.
const annotationInstallation = "overrule.dev/installation"

// installation returns the name of the installation of a configuration.
func (c Configuration) installation() string { return c.Namespace + "/" + c.Service }

// otherInstallationError is returned if the configurations belong to another
// installation.
type otherInstallationError struct{ name, owner, self string }

func (e *otherInstallationError) Error() string {
	return fmt.Sprintf("webhook configurations %[1]s belong to installation %[2]s, whose Service exists; this installation (%[3]s) does not write them and evaluates no writes: "+
		"a cluster has one installation; uninstall this one, uninstall %[2]s, or assign the configurations to this one: "+
		"kubectl annotate --overwrite mutatingwebhookconfiguration/%[1]s validatingwebhookconfiguration/%[1]s %[4]s=%[3]s",
		e.name, e.owner, e.self, annotationInstallation)
}

// checkOwnership returns an error if the configurations must not be written. It sets the
// owner reference to the server's namespace: if the namespace is deleted, the
// configurations are too, as no server answers the calls any more.
func (r *Reconciler) checkOwnership(ctx context.Context, c *Configuration) error {
	ns, err := r.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && ns.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is deleted or terminating: %w", c.Namespace, errNotReady)
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	c.namespaceUID = ns.UID
	both, err := readConfigs(ctx, r.Client, *c)
	if err != nil {
		return err
	}
	for _, config := range both { // the first existing one decides: both are written in this order
		if config.live != nil {
			return r.checkOwner(ctx, config)
		}
	}
	return nil
}

// checkOwner returns an error if a configuration belongs to another installation that
// still exists.
func (r *Reconciler) checkOwner(ctx context.Context, config configClient) error {
	owner := installationOf(config)
	namespace, service, _ := strings.Cut(owner, "/")
	if service == "" || namespace == r.Configuration.Namespace {
		return nil
	}
	_, err := r.Client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.Log.Info("taking over webhook configurations of a removed installation", "installation", owner)
		return nil
	case err != nil:
		return fmt.Errorf("read the Service of installation %s, which owns the webhook configurations: %w", owner, err)
	}
	other := &otherInstallationError{r.Configuration.Name, owner, r.Configuration.installation()}
	if r.Events != nil && r.problemText() != other.Error() {
		r.Events.Eventf(config.reference(), nil, corev1.EventTypeWarning, "TwoInstallations", "Register", "%s", guard.EventNote(other.Error()))
	}
	return other
}

// installationOf returns the installation that owns a configuration, by its annotation
// or, if it was written without one, by its Service; "" for none.
func installationOf(config configClient) string {
	if config.live == nil {
		return ""
	}
	if name := config.live.Annotations[annotationInstallation]; strings.Contains(name, "/") {
		return name
	}
	for _, h := range config.live.Webhooks {
		if h.Name == config.want.Webhooks[0].Name {
			return serviceOf(h)
		}
	}
	return ""
}
