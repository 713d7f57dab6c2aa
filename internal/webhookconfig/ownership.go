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

// annotationInstallation names the installation that a configuration belongs
// to, as NAMESPACE/SERVICE. Two that wrote it in turn would never come to rest.
const annotationInstallation = "overrule.dev/installation"

// installation is the name of the one that a configuration leads to.
func (c Configuration) installation() string { return c.Namespace + "/" + c.Service }

// anotherError tells that the configurations belong to another installation.
type otherInstallationError struct{ name, owner, self string }

func (e *otherInstallationError) Error() string {
	return fmt.Sprintf("the webhook configurations %[1]s belong to the installation %[2]s, whose Service exists, so this one (%[3]s) writes none and judges nothing: "+
		"a cluster has one installation; uninstall this one, or uninstall %[2]s, or give them to this one: "+
		"kubectl annotate --overwrite mutatingwebhookconfiguration/%[1]s validatingwebhookconfiguration/%[1]s %[4]s=%[3]s",
		e.name, e.owner, e.self, annotationInstallation)
}

// claim finds out whether the configurations may be written, and as whose. They
// belong to the server's namespace, and go with it: otherwise nobody could write
// a route where somebody just deleted all that Overrule is made of.
func (r *Reconciler) checkOwnership(ctx context.Context, c *Configuration) error {
	own, err := r.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && own.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is gone, or on its way: %w", c.Namespace, errNotReady)
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	c.namespaceUID = own.UID
	both, err := readConfigs(ctx, r.Client, *c)
	if err != nil {
		return err
	}
	for _, d := range both { // the first that there is decides: both are written in this order
		if d.live != nil {
			return r.checkOwner(ctx, d)
		}
	}
	return nil
}

// mayTake returns an error for a configuration of another installation that is
// still there.
func (r *Reconciler) checkOwner(ctx context.Context, d configClient) error {
	theirs := installationOf(d)
	namespace, service, _ := strings.Cut(theirs, "/")
	if service == "" || namespace == r.Configuration.Namespace {
		return nil
	}
	_, err := r.Client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.Log.Info("taking over the webhook configurations of an installation that is gone", "installation", theirs)
		return nil
	case err != nil:
		return fmt.Errorf("find out whether the installation %s, whose the webhook configurations are, exists: %w", theirs, err)
	}
	another := &otherInstallationError{r.Configuration.Name, theirs, r.Configuration.installation()}
	if r.Events != nil && r.problemText() != another.Error() {
		r.Events.Eventf(d.reference(), nil, corev1.EventTypeWarning, "TwoInstallations", "Register", "%s", guard.EventNote(another.Error()))
	}
	return another
}

// installationOf names the installation that a configuration belongs to, by its
// annotation or, where that was written without one, by where it leads; "" for none.
func installationOf(d configClient) string {
	if d.live == nil {
		return ""
	}
	if name := d.live.Annotations[annotationInstallation]; strings.Contains(name, "/") {
		return name
	}
	for _, h := range d.live.Webhooks {
		if h.Name == d.want.Webhooks[0].Name {
			return serviceOf(h)
		}
	}
	return ""
}

// Problem returns why the configurations are not what they should be, nil for
// nothing that is known. Only the leader knows.
func (r *Reconciler) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

func (r *Reconciler) problemText() string {
	if err := r.Problem(); err != nil {
		return err.Error()
	}
	return ""
}

func (r *Reconciler) setProblem(problem error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = problem
}
