package cel

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The schemas of the variables whose fields are always the same. All fields may
// be absent.
var (
	// pathSchema is the schema of path: an element that the path does not have is
	// absent.
	pathSchema = objectSchema(fields{
		"gatewayClass": objectSchema(fields{"name": stringSchema}),
		"gateway":      objectSchema(fields{"namespace": stringSchema, "name": stringSchema, "className": stringSchema, "labels": stringMapSchema, "namespaceLabels": stringMapSchema}),
		"listenerSet":  objectSchema(fields{"namespace": stringSchema, "name": stringSchema, "labels": stringMapSchema, "namespaceLabels": stringMapSchema}),
		"listener":     objectSchema(fields{"name": stringSchema, "port": integerSchema, "protocol": stringSchema, "hostname": stringSchema}),
		"service":      objectSchema(fields{"namespace": stringSchema, "name": stringSchema, "port": integerSchema, "labels": stringMapSchema, "namespaceLabels": stringMapSchema}),
		"client":       stringSchema,
		"route": objectSchema(fields{
			"group": stringSchema, "kind": stringSchema, "namespace": stringSchema, "name": stringSchema,
			"labels": stringMapSchema, "namespaceLabels": stringMapSchema, "hostnames": listSchema(stringSchema),
		}),
		"rule":    objectSchema(fields{"name": stringSchema, "index": integerSchema, "member": stringSchema}),
		"backend": objectSchema(fields{"group": stringSchema, "kind": stringSchema, "namespace": stringSchema, "name": stringSchema, "port": integerSchema}),
	})
	// originsSchema is the schema of origins: rule key to policy and block.
	originsSchema = mapSchema(objectSchema(fields{"group": stringSchema, "kind": stringSchema, "namespace": stringSchema, "name": stringSchema, "block": stringSchema}))
	// requestSchema is the schema of request. In the background audit operation and
	// userInfo are empty.
	requestSchema = objectSchema(fields{
		"operation": stringSchema,
		"object":    objectSchema(fields{"group": stringSchema, "kind": stringSchema, "namespace": stringSchema, "name": stringSchema}),
		"userInfo":  objectSchema(fields{"username": stringSchema, "uid": stringSchema, "groups": listSchema(stringSchema), "extra": mapSchema(listSchema(stringSchema))}),
	})

	stringSchema    = apiextensionsv1.JSONSchemaProps{Type: "string"}
	integerSchema   = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	stringMapSchema = mapSchema(stringSchema)
)

type fields = map[string]apiextensionsv1.JSONSchemaProps

func objectSchema(f fields) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: f}
}

func listSchema(items apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
}

func mapSchema(values apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values},
	}
}
