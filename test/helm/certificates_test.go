package helm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Users with an issuer need no authority for Overrule.
func TestCustomIssuer(t *testing.T) {
	v := values{"certificates.mode": "cert-manager", "certificates.secretName": "mine"}
	for name, c := range map[string]struct {
		issuerRef, want map[string]any
	}{
		"an Issuer":       {map[string]any{"name": "ours"}, map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "ours"}},
		"a ClusterIssuer": {map[string]any{"name": "ours", "kind": "ClusterIssuer"}, map[string]any{"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "ours"}},
		"one of others": {
			map[string]any{"name": "overrule-system", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"},
			map[string]any{"name": "overrule-system", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := template(t, "elsewhere", v.with(values{"certificates.issuerRef": c.issuerRef}))
			require.NoError(t, err)
			objects := parse(t, r.Manifest)
			var certificates, issuers []string
			for key := range objects {
				switch key.kind {
				case "Certificate":
					certificates = append(certificates, key.name)
				case "Issuer":
					issuers = append(issuers, key.name)
				}
			}
			assert.Equal(t, []string{"overrule-serving"}, certificates)
			assert.Empty(t, issuers)
			spec, _, err := unstructured.NestedMap(objects.get(t, "Certificate", "overrule-serving"), "spec")
			require.NoError(t, err)
			assert.Equal(t, c.want, spec["issuerRef"])
			assert.Equal(t, "mine", spec["secretName"])
			assert.Equal(t, []any{"overrule.elsewhere.svc", "overrule.elsewhere", "overrule.elsewhere.svc.cluster.local"}, spec["dnsNames"])
		})
	}
}

func TestValuesThatExcludeOneAnother(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		says   string
	}{
		"an issuer without cert-manager": {
			values{"certificates.mode": "files", "certificates.issuerRef": map[string]any{"name": "ours"}},
			"certificates.issuerRef requires certificates.mode=cert-manager, but the mode is files: change one of the two",
		},
		"authorities in two places": {
			values{"clientCA.configMap": "a", "clientCA.secret": "b"},
			"clientCA.configMap and clientCA.secret are mutually exclusive: set only the one that contains the authorities",
		},
		"names of callers without an authority": {
			values{"clientCA.subjects": []any{"a"}},
			"clientCA.subjects requires clientCA.configMap or clientCA.secret: set the one that contains the authorities",
		},
		"two classes": {
			values{"priorityClass.create": true, "priorityClassName": "high"},
			"priorityClass.create and priorityClassName are mutually exclusive: unset one of the two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template(t, namespace, c.values)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
