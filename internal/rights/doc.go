// Package rights asks the API server who may remove or change overrides.
package rights
