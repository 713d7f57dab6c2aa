// Package rights asks the API server who may remove or change overrides: those
// who are allowed the verb override on the policy's resource in its namespace.
package rights
