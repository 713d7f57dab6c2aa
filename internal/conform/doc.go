// Package conform checks effective specs against the schema of their kind: two valid policies can merge into one that is not.
package conform
