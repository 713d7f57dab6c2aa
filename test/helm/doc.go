// Package helm holds the Helm chart of deploy to what kustomize installs. It is
// a module of its own, so that nothing else depends on Helm.
package helm
