package certs

import (
	"context"
	"errors"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"overrule.dev/overrule/test/messages"
)

var certificates = schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}

// testCertManager is a CertManager with test files.
type testCertManager struct {
	*testFiles
	*CertManager
	cluster client.WithWatch
	fail    error // of the next reads
}

func newTestCertManager(t *testing.T, there ...client.Object) *testCertManager {
	t.Helper()
	o := &testCertManager{testFiles: newTestFiles(t, nil)}
	scheme := runtime.NewScheme()
	require.NoError(t, certmanager.AddToScheme(scheme))
	o.cluster = fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build()
	reader := interceptor.NewClient(o.cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if o.fail != nil {
				return o.fail
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
	source, err := NewCertManager(CertManagerOptions{
		FilesOptions: o.testFiles.opts, Reader: reader, Namespace: "own", Certificate: "serving", CertificatePoll: time.Millisecond,
	})
	require.NoError(t, err)
	o.CertManager, o.testFiles.Files = source, source.Files
	return o
}

func certificate(conditions ...certmanager.CertificateCondition) *certmanager.Certificate {
	return &certmanager.Certificate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "serving"},
		Spec:       certmanager.CertificateSpec{SecretName: "serving-cert"},
		Status:     certmanager.CertificateStatus{Conditions: conditions},
	}
}

func ready(status cmmeta.ConditionStatus, reason, message string) certmanager.CertificateCondition {
	return certmanager.CertificateCondition{Type: certmanager.CertificateConditionReady, Status: status, Reason: reason, Message: message}
}

func TestCertificateErrorsAreReported(t *testing.T) {
	issuing := certmanager.CertificateCondition{
		Type: certmanager.CertificateConditionIssuing, Status: cmmeta.ConditionTrue, Reason: "DoesNotExist", Message: "Issuing certificate as Secret does not exist",
	}
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		there []client.Object
		fail  error
		is    error
		want  string
	}{
		"no cert-manager": {
			fail: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}}, is: ErrNoCertManager,
			want: "cert-manager.io/v1",
		},
		"no Certificate": {is: ErrNoCertificate, want: "--certificate-name"},
		"no right to it": {
			fail: apierrors.NewForbidden(certificates, "serving", errors.New("no role")),
			want: `certificates.cert-manager.io "serving"`,
		},
		"no API server": {fail: refused, is: refused, want: "connection refused"},
		"no controller": {there: []client.Object{certificate()}, is: ErrNotIssued, want: "conditions"},
		"no certificate yet": {
			there: []client.Object{certificate(ready(cmmeta.ConditionFalse, "DoesNotExist", "Issuing"), issuing)}, is: ErrNotIssued,
			want: "Ready is False (DoesNotExist): Issuing; Issuing is True (DoesNotExist): Issuing certificate as Secret does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTestCertManager(t, c.there...)
			o.fail = c.fail
			o.reloadNow()
			require.ErrorIs(t, o.monitor.check(t.Context()), o.monitor.problem())
			err := o.Healthy(nil)
			require.ErrorIs(t, err, ErrNotReady)
			require.ErrorIs(t, err, ErrMissing, "the error of the files is included")
			require.ErrorContains(t, err, "; certificate own/serving: ")
			require.ErrorContains(t, err, c.want)
			require.NoError(t, o.Problem(), "Healthy reports it")
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}

			o.swap(issueFiles(t, newTestSigner(t, epoch), 0))
			o.reloadNow()
			require.NoError(t, o.Healthy(nil), "valid files are served in any case")
			assert.ErrorContains(t, o.Problem(), c.want)
			o.golden(o.Problem())
			assert.ErrorContains(t, err, o.Problem().Error())

			previous := o.log.String()
			require.Error(t, o.monitor.check(t.Context()))
			assert.Equal(t, previous, o.log.String(), "it is logged once")
		})
	}
}

func TestIssuedCertificateThatIsNotMounted(t *testing.T) {
	o := newTestCertManager(t, certificate(ready(cmmeta.ConditionTrue, "Ready", "Certificate is up to date")))
	o.reloadNow()
	require.ErrorContains(t, o.Healthy(nil), "; certificate own/serving ")
	o.golden(o.Healthy(nil))
	require.NoError(t, o.monitor.check(t.Context()))
	require.ErrorContains(t, o.Healthy(nil), "Secret serving-cert at "+o.dir)
	o.golden(o.Healthy(nil))

	files := issueFiles(t, newTestSigner(t, epoch), 0)
	delete(files, CAFile)
	o.swap(files)
	o.reloadNow()
	assertFileError(t, o.Healthy(nil), o.dir, CAFile, ErrMissing) // cainjector reads it, too

	changed := o.testFiles.Changed()
	o.swap(issueFiles(t, newTestSigner(t, epoch), 0))
	o.reloadNow()
	require.NoError(t, o.Healthy(nil))
	require.NoError(t, o.Problem())
	assert.Nil(t, o.CABundle(), "cainjector writes it")
	<-changed
}

func TestCertificateIsPolledUntilReady(t *testing.T) {
	o := newTestCertManager(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Start(ctx) }()
	require.Eventually(t, func() bool { return errors.Is(o.monitor.problem(), ErrNoCertificate) }, time.Minute, time.Millisecond)
	require.NoError(t, o.cluster.Create(t.Context(), certificate(ready(cmmeta.ConditionTrue, "Ready", ""))))
	require.Eventually(t, func() bool { return o.monitor.problem() == nil }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func TestInvalidCertManagerOptions(t *testing.T) {
	_, err := NewCertManager(CertManagerOptions{})
	for _, option := range []string{"directory", "name to serve", "client", "namespace and name"} {
		assert.ErrorContains(t, err, option)
	}
	messages.Golden(t, err.Error())
	_, err = NewCertificateReader(&rest.Config{Host: "://"})
	assert.ErrorContains(t, err, "client for certificates")
}
