// Package pipelines tests the GitHub action, the GitLab job and the pre-commit hook: it runs
// their steps on Git repositories as those systems do, with a kustomize that renders.
package pipelines
