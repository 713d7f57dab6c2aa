//go:build e2e

package certmanager

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	apiutil "github.com/cert-manager/cert-manager/pkg/api/util"
	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// plane is the control plane of all tests here, on which cert-manager runs.
var (
	plane   *env.Env
	cluster client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	var err error
	if plane, err = env.Boot(ctx); err != nil {
		failed(err)
		return code
	}
	defer func() { failed(plane.Stop()) }()
	if cluster, err = newClient(); err != nil {
		failed(err)
		return code
	}
	controllers, err := Boot(ctx, plane)
	if err != nil {
		failed(err)
		return code
	}
	defer func() { failed(controllers.Stop()) }()
	return m.Run()
}

// newClient returns the admin's client for the core types and cert-manager's.
func newClient() (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kscheme.AddToScheme, cmscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(plane.Config, client.Options{Scheme: scheme})
}

// get returns an object of the server's namespace.
func get[T any, P interface {
	*T
	client.Object
}](t *testing.T, name string) P {
	t.Helper()
	object := P(new(T))
	require.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: server.Namespace, Name: name}, object))
	return object
}

// awaitIssued waits until a Certificate is ready in a revision, and returns its
// Secret.
func awaitIssued(t *testing.T, name string, revision int) map[string][]byte {
	t.Helper()
	var c *cmapi.Certificate
	soon(t, func() bool {
		c = get[cmapi.Certificate](t, name)
		ready := apiutil.CertificateHasCondition(c, cmapi.CertificateCondition{Type: cmapi.CertificateConditionReady, Status: cmmeta.ConditionTrue})
		return ready && c.Status.Revision != nil && *c.Status.Revision >= revision
	}, func() string {
		return fmt.Sprintf("Certificate %s is not ready in revision %d: %+v", name, revision, c.Status)
	})
	return get[corev1.Secret](t, c.Spec.SecretName).Data
}

// renew reissues a Certificate, as "cmctl renew" does, and returns its new
// Secret.
func renew(t *testing.T, name string) map[string][]byte {
	t.Helper()
	next := 0
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c := get[cmapi.Certificate](t, name)
		require.NotNil(t, c.Status.Revision, "it was not issued")
		next = *c.Status.Revision + 1
		apiutil.SetCertificateCondition(c, c.Generation, cmapi.CertificateConditionIssuing, cmmeta.ConditionTrue, "ManuallyTriggered", "a test wants it")
		return cluster.Status().Update(t.Context(), c)
	}))
	return awaitIssued(t, name, next)
}

// renewAfter reissues a Certificate after its authority was replaced. Its issuer
// may observe that a moment later, and sign with the previous key until then.
func renewAfter(t *testing.T, authority map[string][]byte, name string) map[string][]byte {
	t.Helper()
	var secret map[string][]byte
	soon(t, func() bool {
		secret = renew(t, name)
		return bytes.Equal(secret[cmmeta.TLSCAKey], authority[corev1.TLSCertKey])
	}, func() string { return "the issuer goes on signing with the key before" })
	return secret
}

// soon is env.Soon with a message that is made when the wait has failed.
func soon(t *testing.T, condition func() bool, problem lazy) {
	t.Helper()
	env.Soon(t, condition, "%s", problem)
}

type lazy func() string

func (l lazy) String() string { return l() }
