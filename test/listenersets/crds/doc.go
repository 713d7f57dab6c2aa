// Package crds pins the last release of Gateway API whose experimental channel
// has XListenerSets. It is a separate module: the tests find its
// CustomResourceDefinitions in the module cache, and nothing of it is compiled.
// It imports one package that only imports the standard library, so that "go mod
// tidy" keeps the module without its dependencies.
package crds

import _ "sigs.k8s.io/gateway-api/pkg/consts" // config/crd/experimental
