// Package cases is the table of verdicts that the webhook, the API server and the
// CLI must give: changes to existing objects, and the verdict according to
// SEMANTICS. The test of an entry point loads it, submits each case and compares
// the results.
package cases
