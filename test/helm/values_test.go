package helm_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Each value changes the field that it is named after, in the Deployment's pods.
func TestPodValues(t *testing.T) {
	container := []string{"spec", "template", "spec", "containers", "0"}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		values values
		field  []string
		want   string
	}{
		"image":                     {values{"image.repository": "r/overrule", "image.tag": "v1"}, append(container, "image"), `"r/overrule:v1"`},
		"image by digest":           {values{"image.digest": digest}, append(container, "image"), `"overrule@` + digest + `"`},
		"pullPolicy":                {values{"image.pullPolicy": "Always"}, append(container, "imagePullPolicy"), `"Always"`},
		"imagePullSecrets":          {values{"imagePullSecrets": []any{map[string]any{"name": "s"}}}, []string{"spec", "template", "spec", "imagePullSecrets"}, `[{"name":"s"}]`},
		"replicas":                  {values{"replicas": 3}, []string{"spec", "replicas"}, `3`},
		"resources":                 {values{"resources.limits.memory": "2Gi"}, append(container, "resources"), `{"limits":{"memory":"2Gi"},"requests":{"cpu":"100m","memory":"256Mi"}}`},
		"podAnnotations":            {values{"podAnnotations": map[string]any{"a": "b"}}, []string{"spec", "template", "metadata", "annotations"}, `{"a":"b"}`},
		"podLabels":                 {values{"podLabels": map[string]any{"a": "b"}}, []string{"spec", "template", "metadata", "labels"}, `{"a":"b","app.kubernetes.io/name":"overrule","app.kubernetes.io/part-of":"overrule"}`},
		"certificates.secretName":   {values{"certificates.mode": "files", "certificates.secretName": "mine"}, []string{"spec", "template", "spec", "volumes"}, `[{"name":"certificate","secret":{"secretName":"mine","optional":true}}]`},
		"clientCA.secret":           {values{"clientCA.secret": "mine"}, []string{"spec", "template", "spec", "volumes"}, `[{"name":"client-ca","secret":{"secretName":"mine","optional":true}}]`},
		"priorityClass":             {values{"priorityClass.create": true}, []string{"spec", "template", "spec", "priorityClassName"}, `"overrule"`},
		"priorityClassName":         {values{"priorityClassName": "high"}, []string{"spec", "template", "spec", "priorityClassName"}, `"high"`},
		"nodeSelector":              {values{"nodeSelector": map[string]any{"a": "b"}}, []string{"spec", "template", "spec", "nodeSelector"}, `{"a":"b","kubernetes.io/os":"linux"}`},
		"tolerations":               {values{"tolerations": []any{map[string]any{"operator": "Exists"}}}, []string{"spec", "template", "spec", "tolerations"}, `[{"operator":"Exists"}]`},
		"affinity":                  {values{"affinity": map[string]any{"nodeAffinity": map[string]any{}}}, []string{"spec", "template", "spec", "affinity"}, `{"nodeAffinity":{}}`},
		"topologySpreadConstraints": {values{"topologySpreadConstraints": []any{}}, []string{"spec", "template", "spec", "topologySpreadConstraints"}, `null`},
		"extraEnv":                  {values{"extraEnv": []any{map[string]any{"name": "GOMEMLIMIT", "value": "400MiB"}}}, append(container, "env", "2"), `{"name":"GOMEMLIMIT","value":"400MiB"}`},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := rendered(t, c.values).get(t, "Deployment", "overrule")
			assert.JSONEq(t, c.want, at(t, deployment, c.field...))
			before := rendered(t, nil).get(t, "Deployment", "overrule")
			assert.NotEqual(t, c.want, at(t, before, c.field...), "the value differs from the default")
		})
	}
}

// at returns the field of an object, as JSON; a number is an index of a list.
func at(t *testing.T, object any, path ...string) string {
	t.Helper()
	for _, key := range path {
		switch in := object.(type) {
		case map[string]any:
			object = in[key]
		case []any:
			i := int(key[0] - '0')
			object = nil
			if i < len(in) {
				object = in[i]
			}
		}
	}
	out, err := json.Marshal(object)
	require.NoError(t, err)
	return string(out)
}

func TestFlagsFromValues(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		want   []string
	}{
		"none":                   {nil, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json"}},
		"all":                    {values{"enforcement": "audit", "failurePolicy": "Ignore", "logLevel": "debug", "blastRadiusLimit": 12345678}, []string{"--enforcement=audit", "--failure-policy=Ignore", "--log-format=json", "--log-level=debug", "--blast-radius-limit=12345678"}},
		"a limit of matches":     {values{"maxMatches": 500}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--max-matches=500"}},
		"no leader":              {values{"coordination": "none"}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--coordination=none"}},
		"a timeout":              {values{"webhookTimeoutSeconds": 10}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--webhook-timeout=10s"}},
		"a number of YAML":       {values{"blastRadiusLimit": float64(2000000)}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--blast-radius-limit=2000000"}},
		"static webhooks":        {values{"staticWebhooks.enabled": true}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--manage-webhooks=false"}},
		"files":                  {values{"certificates.mode": "files"}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--certificates=files"}},
		"callers by name":        {values{"clientCA.secret": "s", "clientCA.key": "bundle.pem", "clientCA.subjects": []any{"a", "b: c"}}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--client-ca-file=/etc/overrule/client-ca/bundle.pem", "--client-subject=a", "--client-subject=b: c"}},
		"refresh":                {values{"refresh.enabled": true}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--refresh"}},
		"refresh with a rate":    {values{"refresh.enabled": true, "refresh.qps": 50, "refresh.affected": false}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--refresh", "--refresh-qps=50", "--refresh-affected=false"}},
		"a rate without refresh": {values{"refresh.qps": 50}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json"}},
		"others":                 {values{"extraArgs": []any{"--drain-period=10s", "--max-queue=5"}}, []string{"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--drain-period=10s", "--max-queue=5"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := at(t, rendered(t, c.values).get(t, "Deployment", "overrule"), "spec", "template", "spec", "containers", "0", "args")
			want, err := json.Marshal(c.want)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func TestOptionalObjects(t *testing.T) {
	kinds := func(o objects) (out []string) {
		for key := range o {
			if !slices.Contains(out, key.kind) {
				out = append(out, key.kind)
			}
		}
		return out
	}
	assert.NotContains(t, kinds(rendered(t, values{"replicas": 1})), "PodDisruptionBudget", "one replica may be drained")
	assert.Contains(t, kinds(rendered(t, nil)), "PodDisruptionBudget")
	assert.NotContains(t, kinds(rendered(t, values{"crds.install": false})), "CustomResourceDefinition")
	untrusted := rendered(t, values{"staticWebhooks.enabled": true})
	assert.NotContains(t, kinds(untrusted), "ValidatingWebhookConfiguration", "they would reject every write")
	assert.NotContains(t, untrusted, id{kind: "ClusterRole", name: "overrule-webhooks"})
}

func TestStaticWebhooksHaveTheFailurePolicyAndTheTimeout(t *testing.T) {
	objects := rendered(t, static.with(values{"failurePolicy": "Ignore", "webhookTimeoutSeconds": 10}))
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		hooks, _, err := unstructured.NestedSlice(objects.get(t, kind, "overrule"), "webhooks")
		require.NoError(t, err)
		require.NotEmpty(t, hooks)
		for _, hook := range hooks {
			want := "Ignore"
			if hook.(map[string]any)["name"] == "review.overrule.dev" {
				want = "Fail" // a dry run without an answer must fail
			}
			assert.Equal(t, want, hook.(map[string]any)["failurePolicy"], kind)
			seconds := int64(10)
			if hook.(map[string]any)["name"] == "system.validate.overrule.dev" {
				seconds = 1 // in every installation
			}
			assert.EqualValues(t, seconds, hook.(map[string]any)["timeoutSeconds"], kind)
		}
	}
}

func TestSchemaRejects(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		says   string
	}{
		"an unknown value":                 {values{"replicaCount": 2}, "replicaCount"},
		"one that is not there further in": {values{"image.name": "x"}, "name"},
		"an enforcement of no kind":        {values{"enforcement": "block"}, "/enforcement"},
		"a failure policy in small":        {values{"failurePolicy": "fail"}, "/failurePolicy"},
		"a timeout above 30 s":             {values{"webhookTimeoutSeconds": 31}, "/webhookTimeoutSeconds"},
		"a timeout by a flag":              {values{"extraArgs": []any{"--webhook-timeout=5s"}}, "/extraArgs/0"},
		"no replicas":                      {values{"replicas": 0}, "/replicas"},
		"replicas in words":                {values{"replicas": "two"}, "/replicas"},
		"half a path":                      {values{"blastRadiusLimit": 0.5}, "/blastRadiusLimit"},
		"a negative limit":                 {values{"blastRadiusLimit": -1}, "/blastRadiusLimit"},
		"a log level of no kind":           {values{"logLevel": "trace"}, "/logLevel"},
		"no image":                         {values{"image.repository": ""}, "/image/repository"},
		"an image with its digest":         {values{"image.repository": "r/o@sha256:ab"}, "/image/repository"},
		"no tag":                           {values{"image.tag": ""}, "/image/tag"},
		"a tag that is a number":           {values{"image.tag": 1.2}, "/image/tag"},
		"half a digest":                    {values{"image.digest": "sha256:abc"}, "/image/digest"},
		"a pull policy of no kind":         {values{"image.pullPolicy": "Sometimes"}, "/image/pullPolicy"},
		"a secret by its name alone":       {values{"imagePullSecrets": []any{"s"}}, "/imagePullSecrets/0"},
		"a flag that has a value":          {values{"extraArgs": []any{"--enforcement=warn"}}, "/extraArgs/0"},
		"the webhooks by a flag":           {values{"extraArgs": []any{"--manage-webhooks=false"}}, "/extraArgs/0"},
		"a port that the chart knows":      {values{"extraArgs": []any{"--health-bind-address=:1"}}, "/extraArgs/0"},
		"a certificate by a flag":          {values{"extraArgs": []any{"--certificates=files"}}, "/extraArgs/0"},
		"callers by a flag":                {values{"extraArgs": []any{"--client-ca-file=/ca.crt"}}, "/extraArgs/0"},
		"certificates of no kind":          {values{"certificates.mode": "vault"}, "/certificates/mode"},
		"no Secret for them":               {values{"certificates.secretName": ""}, "/certificates/secretName"},
		"an issuer without a name":         {values{"certificates.mode": "cert-manager", "certificates.issuerRef": map[string]any{"kind": "ClusterIssuer"}}, "/certificates/issuerRef"},
		"an issuer by its name alone":      {values{"certificates.issuerRef": "ours"}, "/certificates/issuerRef"},
		"a key with a folder":              {values{"clientCA.key": "certs/ca.crt"}, "/clientCA/key"},
		"a caller without a name":          {values{"clientCA.subjects": []any{""}}, "/clientCA/subjects/0"},
		"a class by name where it is made": {values{"priorityClass": "high"}, "/priorityClass"},
		"a class that no name can be":      {values{"priorityClassName": "High"}, "/priorityClassName"},
		"the label of the selectors":       {values{"podLabels": map[string]any{"app.kubernetes.io/name": "x"}}, "/podLabels"},
		"another address of the pod":       {values{"extraEnv": []any{map[string]any{"name": "POD_IP", "value": "x"}}}, "/extraEnv/0/name"},
		"no flag":                          {values{"extraArgs": []any{"uninstall-webhooks"}}, "/extraArgs/0"},
		"another namespace of the pod":     {values{"extraEnv": []any{map[string]any{"name": "POD_NAMESPACE", "value": "x"}}}, "/extraEnv/0/name"},
		"a variable without a name":        {values{"extraEnv": []any{map[string]any{"value": "x"}}}, "/extraEnv/0"},
		"a limit of no unit":               {values{"resources.limits.memory": "512 MB"}, "/resources/limits/memory"},
		"an annotation that is no text":    {values{"podAnnotations": map[string]any{"a": true}}, "/podAnnotations/a"},
		"a toleration that is text":        {values{"tolerations": []any{"all"}}, "/tolerations/0"},
		"an affinity of no kind":           {values{"affinity": map[string]any{"podLove": map[string]any{}}}, "podLove"},
		"a switch in words":                {values{"networkPolicy.enabled": "yes"}, "/networkPolicy/enabled"},
		"a rate of nothing":                {values{"refresh.qps": 0}, "/refresh/qps"},
		"refreshing by a flag":             {values{"extraArgs": []any{"--refresh"}}, "/extraArgs/0"},
		"a bundle that is no base64":       {values{"staticWebhooks.caBundle": "FILL-IN"}, "/staticWebhooks/caBundle"},
		"no hook at all":                   {values{"uninstallHook": nil}, "uninstallHook"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template(t, namespace, c.values)
			require.ErrorContains(t, err, "values don't meet the specifications of the schema")
			assert.ErrorContains(t, err, c.says)
		})
	}
}
