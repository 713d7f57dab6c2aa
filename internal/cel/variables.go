package cel

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The schemas of the variables whose fields are always the same. All fields may
// be absent.
var (
	// pathSchema is that of path: an element that the path does not have is
	// absent.
	pathSchema = objectOf(fields{
		"gatewayClass": objectOf(fields{"name": text}),
		"gateway":      objectOf(fields{"namespace": text, "name": text, "className": text, "labels": texts, "namespaceLabels": texts}),
		"listenerSet":  objectOf(fields{"namespace": text, "name": text, "labels": texts, "namespaceLabels": texts}),
		"listener":     objectOf(fields{"name": text, "port": number, "protocol": text, "hostname": text}),
		"service":      objectOf(fields{"namespace": text, "name": text, "port": number, "labels": texts, "namespaceLabels": texts}),
		"client":       text,
		"route": objectOf(fields{
			"group": text, "kind": text, "namespace": text, "name": text,
			"labels": texts, "namespaceLabels": texts, "hostnames": listOf(text),
		}),
		"rule":    objectOf(fields{"name": text, "index": number, "member": text}),
		"backend": objectOf(fields{"group": text, "kind": text, "namespace": text, "name": text, "port": number}),
	})
	// originsSchema is that of origins: rule key to policy and block.
	originsSchema = anyName(objectOf(fields{"group": text, "kind": text, "namespace": text, "name": text, "block": text}))
	// requestSchema is that of request; where a sweep judges, operation is
	// empty and nobody is the user.
	requestSchema = objectOf(fields{
		"operation": text,
		"object":    objectOf(fields{"group": text, "kind": text, "namespace": text, "name": text}),
		"userInfo":  objectOf(fields{"username": text, "uid": text, "groups": listOf(text), "extra": anyName(listOf(text))}),
	})

	text   = apiextensionsv1.JSONSchemaProps{Type: "string"}
	number = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	texts  = anyName(text)
)

// Schemas returns the schemas of path, origins and request, by name.
func Schemas() map[string]apiextensionsv1.JSONSchemaProps {
	return map[string]apiextensionsv1.JSONSchemaProps{"path": pathSchema, "origins": originsSchema, "request": requestSchema}
}

type fields = map[string]apiextensionsv1.JSONSchemaProps

func objectOf(f fields) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: f}
}

func listOf(items apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
}

func anyName(values apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values},
	}
}
