//go:build integration

package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// TestMain lets the tests share control planes.
func TestMain(m *testing.M) { env.Main(m) }

func TestServerRights(t *testing.T) {
	cluster := env.Start(t)
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	server := serverAccount(t, cluster)
	env.Soon(t, func() bool { return can(t, server, "list", "namespaces", "-A") }, "the rights are not in force")

	tests := map[string]struct {
		ask string
		may bool
	}{
		"watches routes everywhere":                 {"watch httproutes.gateway.networking.k8s.io -A", true},
		"watches gRPC routes everywhere":            {"watch grpcroutes.gateway.networking.k8s.io -A", true},
		"watches listener sets everywhere":          {"watch listenersets.gateway.networking.k8s.io -A", true},
		"watches reference grants everywhere":       {"watch referencegrants.gateway.networking.k8s.io -A", true},
		"watches TLS routes everywhere":             {"watch tlsroutes.gateway.networking.k8s.io -A", true},
		"watches services everywhere":               {"watch services -A", true},
		"watches profiles":                          {"watch policyprofiles.overrule.dev", true},
		"writes the status of profiles":             {"patch policyprofiles.overrule.dev --subresource=status", true},
		"writes no profile":                         {"patch policyprofiles.overrule.dev", false},
		"creates no profile":                        {"create policyprofiles.overrule.dev", false},
		"asks for reviews in its namespace":         {"create effectivepolicyreviews.overrule.dev -n overrule-system", true},
		"asks for no review elsewhere":              {"create effectivepolicyreviews.overrule.dev -n app", false},
		"changes no pod":                            {"patch pods -n overrule-system", false},
		"writes no service":                         {"patch services -n app", false},
		"watches gateways everywhere":               {"watch gateways.gateway.networking.k8s.io -A", true},
		"watches gateway classes":                   {"watch gatewayclasses.gateway.networking.k8s.io", true},
		"watches CRDs":                              {"watch customresourcedefinitions.apiextensions.k8s.io", true},
		"writes no route":                           {"patch httproutes.gateway.networking.k8s.io -n app", false},
		"writes no CRD":                             {"update customresourcedefinitions.apiextensions.k8s.io", false},
		"creates its webhook configuration":         {"create mutatingwebhookconfigurations.admissionregistration.k8s.io", true},
		"updates its own webhook configuration":     {"update validatingwebhookconfigurations.admissionregistration.k8s.io/overrule", true},
		"updates no other configurations":           {"update validatingwebhookconfigurations.admissionregistration.k8s.io/others", false},
		"does not list webhook configurations":      {"list validatingwebhookconfigurations.admissionregistration.k8s.io", false},
		"deletes its own, as owner references need": {"delete validatingwebhookconfigurations.admissionregistration.k8s.io/overrule", true},
		"deletes no other configurations":           {"delete validatingwebhookconfigurations.admissionregistration.k8s.io/others", false},
		"creates its Secret":                        {"create secrets -n overrule-system", true},
		"updates its Secret":                        {"update secrets/overrule-ca -n overrule-system", true},
		"watches no Secret":                         {"watch secrets/overrule-ca -n overrule-system", false},
		"updates the Secret of its path":            {"update secrets/overrule-path -n overrule-system", true},
		"deletes no Secret":                         {"delete secrets/overrule-path -n overrule-system", false},
		"reads no other Secret of its namespace":    {"get secrets/others -n overrule-system", false},
		"lists no Secrets of its namespace":         {"list secrets -n overrule-system", false},
		"reads no Secret elsewhere":                 {"get secrets/overrule-ca -n app", false},
		"takes its Lease":                           {"update leases.coordination.k8s.io/overrule -n overrule-system", true},
		"watches its Lease":                         {"watch leases.coordination.k8s.io/overrule -n overrule-system", true},
		"watches no other Lease":                    {"watch leases.coordination.k8s.io -n overrule-system", false},
		"takes no other Lease":                      {"update leases.coordination.k8s.io/others -n overrule-system", false},
		"takes no Lease elsewhere":                  {"create leases.coordination.k8s.io -n kube-system", false},
		"records events in its namespace":           {"create events -n overrule-system", true},
		"records events of denials elsewhere":       {"create events.events.k8s.io -n app", true},
		"updates events of denials":                 {"patch events.events.k8s.io -n app", true},
		"deletes no event":                          {"delete events.events.k8s.io -n app", false},
		"creates SubjectAccessReviews":              {"create subjectaccessreviews.authorization.k8s.io", true},
		"watches constraints":                       {"watch policyconstraints.overrule.dev -A", true},
		"watches constraints of the cluster":        {"watch clusterpolicyconstraints.overrule.dev", true},
		"writes the status of constraints":          {"patch policyconstraints.overrule.dev --subresource=status -n app", true},
		"writes no constraint":                      {"patch policyconstraints.overrule.dev -n app", false},
		"removes no override itself":                {"override authpolicies.kuadrant.io -n app", false},
		"reads no pod":                              {"list pods -A", false},
		"gives itself no right":                     {"create clusterrolebindings.rbac.authorization.k8s.io", false},
		"impersonates no other users":               {"impersonate users", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			question := strings.Fields(tt.ask)
			assert.Equal(t, tt.may, can(t, server, question[0], question[1:]...), tt.ask)
		})
	}
}

// can asks the API server as that user.
func can(t *testing.T, user *env.User, verb string, object ...string) bool {
	t.Helper()
	answer := user.Kubectl(append([]string{"auth", "can-i", verb}, object...)...)
	require.Contains(t, []string{"yes", "no"}, strings.TrimSpace(answer.Stdout), answer.Stderr)
	require.NotContains(t, answer.Stderr, "doesn't have a resource type", "the arguments are invalid")
	return answer.Code == 0
}

func serverAccount(t *testing.T, cluster *env.Env) *env.User {
	t.Helper()
	account, err := cluster.ServiceAccount(t.Context(), namespace, "overrule")
	require.NoError(t, err)
	return account
}
