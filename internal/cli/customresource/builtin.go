package customresource

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

//go:generate go run ./generate

//go:embed builtin/*.json
var builtinFiles embed.FS

var builtin sync.Map // of *Kind, by file

// Builtin returns a kind of Gateway API, of the experimental channel, or of Overrule;
// nil for any other. Each is read when it is first asked for; a test reads all.
func Builtin(group, kind string) *Kind {
	file := "builtin/" + group + "_" + kind + ".json"
	known, ok := builtin.Load(file)
	if !ok {
		var k *Kind
		if data, err := builtinFiles.ReadFile(file); err == nil {
			if crd, err := parse(data); err == nil {
				k = New(crd)
			}
		}
		known, _ = builtin.LoadOrStore(file, k)
	}
	return known.(*Kind) //nolint:forcetypeassert // no other type is stored
}

func parse(data []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := new(apiextensionsv1.CustomResourceDefinition)
	if err := json.Unmarshal(data, crd); err != nil {
		return nil, fmt.Errorf("decode an embedded definition: %w", err)
	}
	crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
	return crd, nil
}
