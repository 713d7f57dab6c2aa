package deploy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestNamespaceDemandsRestrictedPods(t *testing.T) {
	labels := find[corev1.Namespace](t, render(t, "base"), "Namespace", namespace).Labels
	for _, mode := range []string{"enforce", "audit", "warn"} {
		assert.Equal(t, "restricted", labels["pod-security.kubernetes.io/"+mode], mode)
	}
}

func TestEveryContainerIsConfined(t *testing.T) {
	for _, dir := range installations {
		t.Run(dir, func(t *testing.T) {
			spec := deployment(t, dir).Spec.Template.Spec
			assert.Equal(t, &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      ptr.To[int64](65532),
				RunAsGroup:     ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}, spec.SecurityContext)
			assert.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC, "shares nothing with its node")
			if !slices.Contains([]string{"overlays/cert-manager", "overlays/certificate-files"}, dir) {
				assert.Empty(t, spec.Volumes, "nothing but the token is mounted")
			}

			containers := append(spec.InitContainers, spec.Containers...)
			require.NotEmpty(t, containers)
			for _, container := range containers {
				assert.Equal(t, &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					ReadOnlyRootFilesystem:   new(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}, container.SecurityContext, container.Name)
			}
		})
	}
}

func TestTokenIsMountedByTheDeploymentAlone(t *testing.T) {
	objects := render(t, "base")
	account := find[corev1.ServiceAccount](t, objects, "ServiceAccount", "overrule")
	assert.Equal(t, new(false), account.AutomountServiceAccountToken)

	spec := deployment(t, "base").Spec.Template.Spec
	assert.Equal(t, "overrule", spec.ServiceAccountName)
	assert.Equal(t, new(true), spec.AutomountServiceAccountToken)
}

func TestMemoryLimits(t *testing.T) {
	container := deployment(t, "base").Spec.Template.Spec.Containers[0]
	assert.False(t, container.Resources.Limits.Memory().IsZero())
	assert.False(t, container.Resources.Requests.Memory().IsZero())
	assert.False(t, container.Resources.Requests.Cpu().IsZero())
	assert.True(t, container.Resources.Limits.Cpu().IsZero(), "a throttled pod delays every write that it evaluates")
	for _, e := range container.Env {
		assert.NotEqual(t, "GOMEMLIMIT", e.Name, "the server reads its limit and reserves memory outside of the Go heap")
	}
}
