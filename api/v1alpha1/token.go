package v1alpha1

import "regexp"

// calledPath matches the path of a webhook call in the URL that an API server
// includes in the error of a failed call.
var calledPath = regexp.MustCompile(`(/(?:validate|mutate|review)/)[^?#"\s\\]+`)

// RedactToken removes the token at the end of webhook paths from a message of an API
// server: not all readers of logs, events and conditions may know it.
func RedactToken(message string) string { return calledPath.ReplaceAllString(message, "${1}…") }
