// Package crds pins the last release of Gateway API whose experimental channel has
// XListenerSets. It is a module of its own: the tests find its
// CustomResourceDefinitions in the module cache, and nothing is compiled of it. It
// imports one package that imports nothing outside of the standard library, so
// that "go mod tidy" keeps the module, and no more.
package crds

import _ "sigs.k8s.io/gateway-api/pkg/consts" // config/crd/experimental
