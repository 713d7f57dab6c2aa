package v1alpha1

import "regexp"

// calledPath is the path of a call, in the URL that an API server puts into its
// message where the call failed.
var calledPath = regexp.MustCompile(`(/(?:validate|mutate)/)[^?#"\s\\]+`)

// RedactToken returns a text of an API server without the token that the paths of the
// webhooks end with: logs, Events and conditions are read by people who may not
// know it.
func RedactToken(said string) string { return calledPath.ReplaceAllString(said, "${1}…") }
