package webhook

import (
	"fmt"
	"strings"
	"unicode"

	"overrule.dev/overrule/internal/guard"
)

// Limits of the API server for warnings: it drops a warning with a control character,
// and beyond 4096 runes in all it cuts each to 256.
const (
	warningLength = 120
	warningCount  = 10
	warningTotal  = 4096
)

// warnings returns the warnings for findings: one line each, at most warningCount, and
// then the number of the remaining ones.
func warnings(findings []guard.Finding) []string {
	findings = guard.OmitRepeated(findings)
	var out []string
	total := 0
	for i, f := range findings {
		line := warning(f)
		if total += len([]rune(line)); i >= warningCount || total > warningTotal {
			return append(out, fmt.Sprintf("and %d more; to list all, run kubectl overrule check -f", len(findings)-i))
		}
		out = append(out, line)
	}
	return out
}

// warning fits a finding into one line. If it is too long, it drops the advice first,
// then the groups of kinds, and then shortens names.
func warning(f guard.Finding) string {
	line := oneLine(f.Message())
	if fits(line) {
		return line
	}
	line = oneLine(f.What)
	if !fits(line) && f.Short != "" {
		line = oneLine(f.Short)
	}
	if !fits(line) {
		line = withoutGroups(line)
	}
	for _, longest := range []int{60, 40, 30, 24, 18} {
		if fits(line) {
			return line
		}
		line = shortenWords(line, longest)
	}
	if runes := []rune(line); len(runes) > warningLength {
		return string(runes[:warningLength-1]) + "…"
	}
	return line
}

func fits(line string) bool { return len([]rune(line)) <= warningLength }

// oneLine replaces characters that a warning must not have.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// printable replaces by spaces the characters that a terminal does not show, or that
// change how it shows the rest.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
