// Package crds pins the modules whose CustomResourceDefinitions the tests of the
// policy kinds install. It is a separate module, so that no other module depends
// on them; they are found in the module cache and not compiled. Of each it
// imports one package that only imports the standard library, so that "go mod
// tidy" keeps the module without its dependencies.
package crds

import (
	_ "github.com/envoyproxy/gateway" // charts/gateway-helm/charts/crds/crds/generated
	_ "istio.io/api/label"            // kubernetes/customresourcedefinitions.gen.yaml
)
