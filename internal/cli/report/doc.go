// Package report writes the results of check, diff and violations in the formats that
// CI systems read: GitHub's annotations, SARIF, JUnit, GitLab's code quality report, and
// Markdown for a pull request.
//
// The files, by the question that they answer:
//
//   - report, row: what was found, and how the formats show it
//   - formats: all formats; github, sarif, junit, gitlab, markdown, markdownchange: one each,
//     with its limits
//   - escape, uri, reason: texts, files and links to the docs
package report
