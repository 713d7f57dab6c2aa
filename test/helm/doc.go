// Package helm compares the Helm chart of deploy with what kustomize installs. It
// is a separate module, so that no other module depends on Helm.
package helm
