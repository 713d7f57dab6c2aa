package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func configuration() Configuration {
	return Configuration{
		Name: "overrule", Namespace: "overrule-system", Service: "hooks", Port: 8443,
		FailurePolicy: admissionregistrationv1.Ignore, CABundle: []byte("bundle"),
		Policies: []Resource{
			{"policies.example.com", "v1", "widepolicies", false},
			{"kuadrant.io", "v1", "ratelimitpolicies", true},
			{"policies.example.com", "v1", "timeoutpolicies", true},
			{"kuadrant.io", "v1", "authpolicies", true},
			{"gateway.networking.k8s.io", "v1", "backendtlspolicies", true},
			{"kuadrant.io", "v1", "authpolicies", true}, // twice
		},
	}
}

const wantRules = `[
	{"apiGroups":["gateway.networking.k8s.io"],"apiVersions":["v1"],"scope":"Namespaced","resources":["backendtlspolicies","gateways","grpcroutes","httproutes","listenersets","referencegrants","tcproutes","tlsroutes","udproutes"],"operations":%s},
	{"apiGroups":["kuadrant.io"],"apiVersions":["v1"],"scope":"Namespaced","resources":["authpolicies","ratelimitpolicies"],"operations":%s},
	{"apiGroups":["overrule.dev"],"apiVersions":["v1alpha1"],"scope":"Cluster","resources":["policyprofiles"],"operations":%s},
	{"apiGroups":["policies.example.com"],"apiVersions":["v1"],"scope":"Cluster","resources":["widepolicies"],"operations":%s},
	{"apiGroups":["policies.example.com"],"apiVersions":["v1"],"scope":"Namespaced","resources":["timeoutpolicies"],"operations":%s}]`

func ruled(operations string) string { return strings.ReplaceAll(wantRules, "%s", operations) }

func TestTheConfigurationsSayAllThatTheDesignAsks(t *testing.T) {
	head := func(kind string) string {
		return `"kind":"` + kind + `","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"overrule",
			"labels":{"app.kubernetes.io/managed-by":"overrule","app.kubernetes.io/name":"overrule"}}`
	}
	body := func(path string) string {
		return `"clientConfig":{"service":{"namespace":"overrule-system","name":"hooks","path":"` + path + `","port":8443},"caBundle":"YnVuZGxl"},
			"failurePolicy":"Ignore","matchPolicy":"Equivalent","sideEffects":"None","timeoutSeconds":3,"admissionReviewVersions":["v1"],
			"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["overrule-system"]}]}`
	}
	validating, err := json.Marshal(configuration().Validating())
	require.NoError(t, err)
	assert.JSONEq(t, `{`+head("ValidatingWebhookConfiguration")+`,"webhooks":[{"name":"validate.overrule.dev",`+body("/validate")+
		`,"rules":`+ruled(`["CREATE","UPDATE","DELETE"]`)+`}]}`, string(validating))

	mutating, err := json.Marshal(configuration().Mutating())
	require.NoError(t, err)
	assert.JSONEq(t, `{`+head("MutatingWebhookConfiguration")+`,"webhooks":[{"name":"mutate.overrule.dev",`+body("/mutate")+
		`,"reinvocationPolicy":"IfNeeded","rules":`+ruled(`["CREATE","UPDATE"]`)+`}]}`, string(mutating))
}

func TestTheOrderOfTheKindsDoesNotMatter(t *testing.T) {
	want, err := json.Marshal(configuration().Validating())
	require.NoError(t, err)
	c := configuration()
	for i := range c.Policies {
		c.Policies[0], c.Policies[i] = c.Policies[i], c.Policies[0]
		got, err := json.Marshal(c.Validating())
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	}
}

func TestOnlyTheMainResourcesAreWatched(t *testing.T) {
	for _, rule := range configuration().rules(admissionregistrationv1.Create) {
		for _, resource := range rule.Resources {
			assert.NotContains(t, resource, "/", "a status write is not judged")
			assert.NotContains(t, resource, "*")
		}
	}
}
