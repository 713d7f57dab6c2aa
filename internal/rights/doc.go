// Package rights checks with SubjectAccessReviews whether a user is allowed to
// remove or change overrides. It takes the verb override on the policy's resource
// in its namespace.
package rights
