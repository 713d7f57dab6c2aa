package webhookconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func configuration() Configuration {
	return Configuration{
		Name: "overrule", Namespace: "overrule-system", Service: "hooks", Port: 8443,
		FailurePolicy: admissionregistrationv1.Ignore, CABundle: []byte("bundle"),
		PolicyResources: PolicyResources{Policies: []Resource{
			{"policies.example.com", "v1", "widepolicies", false},
			{"kuadrant.io", "v1", "ratelimitpolicies", true},
			{"policies.example.com", "v1", "timeoutpolicies", true},
			{"kuadrant.io", "v1", "authpolicies", true},
			{"gateway.networking.k8s.io", "v1", "backendtlspolicies", true},
			{"kuadrant.io", "v1", "authpolicies", true}, // twice
		}},
	}
}

const policyRules = `
	{"apiGroups":["policies.example.com"],"apiVersions":["v1"],"scope":"Cluster","resources":["widepolicies"],"operations":%s},
	{"apiGroups":["policies.example.com"],"apiVersions":["v1"],"scope":"Namespaced","resources":["timeoutpolicies"],"operations":%s}`

const kuadrantRule = `
	{"apiGroups":["kuadrant.io"],"apiVersions":["v1"],"scope":"Namespaced","resources":["authpolicies","ratelimitpolicies"],"operations":%s},`

const evaluatedRules = `
	{"apiGroups":["gateway.networking.k8s.io"],"apiVersions":["v1"],"scope":"Cluster","resources":["gatewayclasses"],"operations":%s},
	{"apiGroups":["gateway.networking.k8s.io"],"apiVersions":["v1"],"scope":"Namespaced","resources":["backendtlspolicies","gateways","grpcroutes","httproutes","listenersets","referencegrants","tcproutes","tlsroutes","udproutes"],"operations":%s},
	{"apiGroups":["gateway.networking.x-k8s.io"],"apiVersions":["v1alpha1"],"scope":"Namespaced","resources":["xlistenersets"],"operations":%s},` +
	kuadrantRule + `
	{"apiGroups":["overrule.dev"],"apiVersions":["v1alpha1"],"scope":"Cluster","resources":["clusterpolicyconstraints","policyprofiles"],"operations":%s},
	{"apiGroups":["overrule.dev"],"apiVersions":["v1alpha1"],"scope":"Namespaced","resources":["policyconstraints"],"operations":%s},` +
	policyRules

const annotatedRules = `
	{"apiGroups":["gateway.networking.k8s.io"],"apiVersions":["v1"],"scope":"Namespaced","resources":["backendtlspolicies","grpcroutes","httproutes","tcproutes","tlsroutes","udproutes"],"operations":%s},` +
	kuadrantRule + policyRules

func ruled(rules, operations string) string {
	return `"rules":[` + strings.ReplaceAll(rules, "%s", operations) + `]`
}

// wantOfSystem is what docs/guardrails.md says of the system: a deletion by one
// of its users, or an object that is being deleted and stays what it is.
const wantOfSystem = "request.operation == 'DELETE' && (" +
	"request.userInfo.username in ['system:serviceaccount:kube-system:namespace-controller', 'system:kube-controller-manager'] && has(oldObject.metadata.namespace) || " +
	"request.userInfo.username in ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager'] && has(oldObject.metadata.ownerReferences)) || " +
	"request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && " +
	"object.all(k, k in ['metadata', 'status'] || k in oldObject && object[k] == oldObject[k]) && oldObject.all(k, k in ['metadata', 'status'] || k in object) && " +
	"object.metadata.all(k, k in ['finalizers', 'generation', 'managedFields', 'ownerReferences', 'resourceVersion'] || k in oldObject.metadata && object.metadata[k] == oldObject.metadata[k]) && " +
	"oldObject.metadata.all(k, k in ['finalizers', 'generation', 'managedFields', 'ownerReferences', 'resourceVersion'] || k in object.metadata) && " +
	"(!has(object.metadata.ownerReferences) || has(oldObject.metadata.ownerReferences) && (object.metadata.ownerReferences == oldObject.metadata.ownerReferences || " +
	"object.metadata.ownerReferences.size() * oldObject.metadata.ownerReferences.size() <= 2500 && " +
	"object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(w, " +
	"o.uid == w.uid && o.apiVersion == w.apiVersion && o.kind == w.kind && o.name == w.name))))"

func conditioned(name, expression string) string {
	return `,"matchConditions":[{"name":"` + name + `","expression":"` + expression + `"}]`
}

const wantNamespaces = `"rules":[{"apiGroups":[""],"apiVersions":["v1"],"scope":"Cluster","resources":["namespaces","namespaces/finalize","namespaces/status"],"operations":["UPDATE","DELETE"]}],
	"matchConditions":[{"name":"deleted-or-labelled","expression":"request.operation == 'DELETE' || has(object.metadata.labels) != has(oldObject.metadata.labels) || has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels || has(object.metadata.ownerReferences) != has(oldObject.metadata.ownerReferences) || has(object.metadata.ownerReferences) && object.metadata.ownerReferences != oldObject.metadata.ownerReferences"}]`

const wantRelabelled = "!has(request.subResource) || request.subResource == '' || has(object.metadata.labels) != has(oldObject.metadata.labels) || has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels || has(object.metadata.ownerReferences) != has(oldObject.metadata.ownerReferences) || has(object.metadata.ownerReferences) && object.metadata.ownerReferences != oldObject.metadata.ownerReferences || has(object.metadata.annotations) != has(oldObject.metadata.annotations) || has(object.metadata.annotations) && object.metadata.annotations != oldObject.metadata.annotations"

// otherVersionThan is the start of a condition on the versions of kinds.
const otherVersionThan = "!(request.requestResource.group + '/' + request.requestResource.version + '/' + request.requestResource.resource in "

const wantOtherVersion = otherVersionThan +
	"['gateway.networking.k8s.io/v1/backendtlspolicies', 'kuadrant.io/v1/authpolicies', 'kuadrant.io/v1/ratelimitpolicies', " +
	"'policies.example.com/v1/timeoutpolicies', 'policies.example.com/v1/widepolicies'])"

const wantDefinitions = `"rules":[{"apiGroups":["apiextensions.k8s.io"],"apiVersions":["v1"],"scope":"Cluster","resources":["customresourcedefinitions","customresourcedefinitions/status"],"operations":["CREATE","UPDATE","DELETE"]}],
	"matchConditions":[
		{"name":"known","expression":"['authpolicies.kuadrant.io', 'backendtlspolicies.gateway.networking.k8s.io', 'clusterpolicyconstraints.overrule.dev', 'gatewayclasses.gateway.networking.k8s.io', 'gateways.gateway.networking.k8s.io', 'grpcroutes.gateway.networking.k8s.io', 'httproutes.gateway.networking.k8s.io', 'listenersets.gateway.networking.k8s.io', 'policyconstraints.overrule.dev', 'policyprofiles.overrule.dev', 'ratelimitpolicies.kuadrant.io', 'referencegrants.gateway.networking.k8s.io', 'tcproutes.gateway.networking.k8s.io', 'timeoutpolicies.policies.example.com', 'tlsroutes.gateway.networking.k8s.io', 'udproutes.gateway.networking.k8s.io', 'widepolicies.policies.example.com', 'xlistenersets.gateway.networking.x-k8s.io'].exists(d, d.endsWith('.' + (request.operation == 'DELETE' ? oldObject : object).spec.group))"},
		{"name":"deleted-or-redefined","expression":"request.operation != 'UPDATE' || object.spec != oldObject.spec || has(object.metadata.labels) != has(oldObject.metadata.labels) || has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels || has(object.metadata.ownerReferences) != has(oldObject.metadata.ownerReferences) || has(object.metadata.ownerReferences) && object.metadata.ownerReferences != oldObject.metadata.ownerReferences || (has(oldObject.status) && has(oldObject.status.conditions) && oldObject.status.conditions.exists(c, c.type == 'Established' && c.status == 'True')) != (has(object.status) && has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'Established' && c.status == 'True'))"}]`

func TestConfigurations(t *testing.T) {
	head := func(kind string) string {
		return `"kind":"` + kind + `","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"overrule",
			"labels":{"app.kubernetes.io/managed-by":"overrule","app.kubernetes.io/name":"overrule"},
			"annotations":{"overrule.dev/installation":"overrule-system/hooks"}}`
	}
	body := func(name, path, sideEffects string, timeout ...int) string {
		return `"name":"` + name + `","clientConfig":{"service":{"namespace":"overrule-system","name":"hooks","path":"` + path + `","port":8443},"caBundle":"YnVuZGxl"},
			"matchPolicy":"Equivalent","sideEffects":"` + sideEffects + `","timeoutSeconds":` + fmt.Sprint(append(timeout, 3)[0]) + `,"admissionReviewVersions":["v1"],
			"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["overrule-system"]}]},"objectSelector":{}`
	}
	c := configuration()
	c.FailurePolicy = admissionregistrationv1.Fail
	validating, err := json.Marshal(c.Validating())
	require.NoError(t, err)
	assert.JSONEq(t, `{`+head("ValidatingWebhookConfiguration")+`,"webhooks":[
		{`+body("validate.overrule.dev", "/validate", "NoneOnDryRun")+`,"failurePolicy":"Fail",`+ruled(evaluatedRules, `["CREATE","UPDATE","DELETE"]`)+conditioned("not-of-the-system", "!("+wantOfSystem+")")+`},
		{`+body("system.validate.overrule.dev", "/validate", "NoneOnDryRun", 1)+`,"failurePolicy":"Ignore",`+ruled(evaluatedRules, `["UPDATE","DELETE"]`)+conditioned("of-the-system", wantOfSystem)+`},
		{`+body("services.validate.overrule.dev", "/validate", "NoneOnDryRun")+`,"failurePolicy":"Ignore","matchConditions":[{"name":"not-of-the-system","expression":"!(`+wantOfSystem+`)"},{"name":"itself-or-labelled","expression":"`+wantRelabelled+`"}]},
		{`+body("namespaces.validate.overrule.dev", "/validate", "NoneOnDryRun")+`,"failurePolicy":"Ignore",`+wantNamespaces+`},
		{`+body("definitions.validate.overrule.dev", "/validate", "NoneOnDryRun")+`,"failurePolicy":"Ignore",`+wantDefinitions+`},
		{`+body("versions.validate.overrule.dev", "/validate", "NoneOnDryRun")+`,"failurePolicy":"Fail"`+conditioned("other-version", wantOtherVersion)+`}]}`, string(validating))

	mutating, err := json.Marshal(c.Mutating())
	require.NoError(t, err)
	assert.JSONEq(t, `{`+head("MutatingWebhookConfiguration")+`,"webhooks":[{`+body("mutate.overrule.dev", "/mutate", "None")+
		`,"failurePolicy":"Fail","reinvocationPolicy":"IfNeeded",`+ruled(annotatedRules, `["CREATE","UPDATE"]`)+conditioned("not-being-deleted", "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)")+`},{
		"name":"review.overrule.dev","clientConfig":{"service":{"namespace":"overrule-system","name":"hooks","path":"/review","port":8443},"caBundle":"YnVuZGxl"},
		"rules":[{"apiGroups":["overrule.dev"],"apiVersions":["v1alpha1"],"scope":"Namespaced","resources":["effectivepolicyreviews"],"operations":["CREATE"]}],
		"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"sideEffects":"None","timeoutSeconds":3,
		"reinvocationPolicy":"IfNeeded","admissionReviewVersions":["v1"]}]}`, string(mutating))
	c.FailurePolicy = admissionregistrationv1.Ignore
	assert.Equal(t, admissionregistrationv1.Fail, *c.Mutating().Webhooks[1].FailurePolicy, "a dry run of a review fails without an answer")
}

func TestScaleRules(t *testing.T) {
	c := configuration()
	without := len(c.Validating().Webhooks[0].Rules)
	c.Scales = []Resource{{"policies.example.com", "v1beta1", "timeoutpolicies/scale", true}}
	hooks := c.Validating().Webhooks
	require.Len(t, hooks[0].Rules, without+1)
	data, err := json.Marshal(hooks[0].Rules[without])
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiGroups":["policies.example.com"],"apiVersions":["v1beta1"],"scope":"Namespaced","resources":["timeoutpolicies/scale"],"operations":["UPDATE"]}`, string(data))
	assert.NotContains(t, strings.Join(c.Definitions(), " "), "/scale")
}

func TestServiceRules(t *testing.T) {
	// services are the entries that have them, with their failurePolicy and operations.
	services := func(c Configuration) map[string]string {
		out := map[string]string{}
		for _, hook := range c.Validating().Webhooks {
			for _, rule := range hook.Rules {
				if slices.Contains(rule.Resources, "services") {
					out[hook.Name] = fmt.Sprintf("%s %v", *hook.FailurePolicy, rule.Operations)
				}
			}
		}
		return out
	}
	without := configuration()
	without.FailurePolicy = admissionregistrationv1.Fail
	assert.Empty(t, services(without))
	c := without
	c.Services = true
	assert.Equal(t, map[string]string{
		"services.validate.overrule.dev": "Ignore [CREATE UPDATE DELETE]", // a cluster can be repaired while no server answers
		"system.validate.overrule.dev":   "Ignore [UPDATE DELETE]",
	}, services(c))
	names := func(c Configuration) (out []string) {
		for _, hook := range c.Validating().Webhooks {
			out = append(out, hook.Name)
		}
		return out
	}
	assert.Equal(t, names(c), names(without), "an entry that came and went would lose the caBundle that is another's")
	byName := map[string]string{}
	for _, hook := range c.Validating().Webhooks {
		byName[hook.Name] = hook.MatchConditions[0].Expression
	}
	assert.Equal(t, byName["validate.overrule.dev"], byName["services.validate.overrule.dev"], "no write is evaluated twice")
	assert.Equal(t, without.Mutating(), c.Mutating(), "they carry no annotation of ours")
	assert.Equal(t, without.Definitions(), c.Definitions(), "nor have they a definition")
}

func TestKindOrderDoesNotMatter(t *testing.T) {
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

func TestSubresourceRules(t *testing.T) {
	c := configuration()
	c.FailurePolicy = admissionregistrationv1.Fail
	c.Policies = []Resource{{"example.com", "v1", "paints", true}, {"example.com", "v1beta1", "dyes", false}}
	c.Subresources = []Resource{
		{"example.com", "v1", "paints/status", true}, {"example.com", AllVersions, "paints/scale", true},
		{"example.com", AllVersions, "dyes/status", false}, {"example.com", AllVersions, "dyes/scale", false},
	}
	hooks := c.Validating().Webhooks
	hook := hooks[len(hooks)-1]
	assert.Equal(t, "versions.validate.overrule.dev", hook.Name)
	assert.Equal(t, admissionregistrationv1.Equivalent, *hook.MatchPolicy)
	assert.Equal(t, admissionregistrationv1.Fail, *hook.FailurePolicy)
	data, err := json.Marshal(hook.Rules)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"apiGroups":["example.com"],"apiVersions":["*"],"scope":"Cluster","resources":["dyes/scale","dyes/status"],"operations":["UPDATE"]},
		{"apiGroups":["example.com"],"apiVersions":["*"],"scope":"Namespaced","resources":["paints/scale"],"operations":["UPDATE"]},
		{"apiGroups":["example.com"],"apiVersions":["v1"],"scope":"Namespaced","resources":["paints/status"],"operations":["UPDATE"]}]`, string(data))
	require.Len(t, hook.MatchConditions, 1)
	assert.Equal(t, otherVersionThan+
		"['example.com/v1/paints', 'example.com/v1beta1/dyes'])", hook.MatchConditions[0].Expression)
	assert.NotContains(t, strings.Join(c.Definitions(), " "), "/status")
}

func TestTimeoutIsRegistered(t *testing.T) {
	c := configuration()
	c.Timeout = 17 * time.Second
	for _, hook := range c.Validating().Webhooks {
		want := int32(17)
		if hook.Name == "system.validate.overrule.dev" {
			want = 1
		}
		assert.Equal(t, want, *hook.TimeoutSeconds, hook.Name)
	}
	for _, hook := range c.Mutating().Webhooks {
		assert.Equal(t, int32(17), *hook.TimeoutSeconds, hook.Name)
	}
}
