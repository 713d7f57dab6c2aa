// Package crds pins the modules whose CustomResourceDefinitions the tests of
// the policy kinds install. It is a module of its own, so that nothing else
// depends on them; they are found in the module cache and not compiled into
// anything. Of each it imports one package that imports nothing outside of the
// standard library, so that "go mod tidy" keeps the module, and no more.
package crds

import (
	_ "github.com/envoyproxy/gateway" // charts/gateway-helm/charts/crds/crds/generated
	_ "istio.io/api/label"            // kubernetes/customresourcedefinitions.gen.yaml
)
