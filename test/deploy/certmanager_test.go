package deploy_test

import (
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"overrule.dev/overrule/certs"
)

func TestCertManagerCertificateIsServed(t *testing.T) {
	objects := render(t, "overlays/cert-manager")
	serving := find[certmanager.Certificate](t, objects, "Certificate", "overrule-serving")
	assert.Equal(t, certs.ServiceNames("overrule", namespace), serving.Spec.DNSNames)
	assert.Equal(t, []certmanager.KeyUsage{certmanager.UsageDigitalSignature, certmanager.UsageServerAuth}, serving.Spec.Usages)

	spec := deployment(t, "overlays/cert-manager").Spec.Template.Spec
	require.Len(t, spec.Volumes, 1)
	assert.Equal(t, &corev1.SecretVolumeSource{SecretName: serving.Spec.SecretName, Optional: new(true)}, spec.Volumes[0].Secret)
	assert.Equal(t, []corev1.VolumeMount{{Name: spec.Volumes[0].Name, MountPath: "/etc/overrule/certs", ReadOnly: true}}, spec.Containers[0].VolumeMounts)
}

func TestCertManagerAuthorityIsSelfSigned(t *testing.T) {
	objects := render(t, "overlays/cert-manager")
	serving := find[certmanager.Certificate](t, objects, "Certificate", "overrule-serving")
	signs := find[certmanager.Issuer](t, objects, "Issuer", serving.Spec.IssuerRef.Name)
	require.NotNil(t, signs.Spec.CA)
	authority := find[certmanager.Certificate](t, objects, "Certificate", "overrule-authority")
	assert.True(t, authority.Spec.IsCA)
	assert.Equal(t, authority.Spec.SecretName, signs.Spec.CA.SecretName)
	assert.NotNil(t, find[certmanager.Issuer](t, objects, "Issuer", authority.Spec.IssuerRef.Name).Spec.SelfSigned)
	for _, object := range objects {
		if object.GroupVersionKind().Group == "cert-manager.io" {
			assert.Equal(t, namespace, object.GetNamespace(), object.GetName())
		}
	}
}
