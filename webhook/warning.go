package webhook

import (
	"fmt"
	"strings"
	"unicode"

	"overrule.dev/overrule/internal/guard"
)

// Limits of what the API server passes on to a terminal: a control character
// drops a warning, and beyond 4096 runes in all each is cut to 256.
const (
	warningLength = 120
	warningCount  = 10
	warningTotal  = 4096
)

// warnings returns what to tell on a terminal: one line for each finding, at
// most warningCount and then how many more there are.
func warnings(findings []guard.Finding) []string {
	findings = guard.OmitRepeated(findings)
	var out []string
	total := 0
	for i, f := range findings {
		line := warning(f)
		if total += len([]rune(line)); i >= warningCount || total > warningTotal {
			return append(out, fmt.Sprintf("and %d more: kubectl overrule check -f tells them all", len(findings)-i))
		}
		out = append(out, line)
	}
	return out
}

// warning fits a finding into one line: too long, the advice goes first, then
// the groups of kinds, and then names are shortened; what happened stays.
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

// oneLine replaces what may not stand in a warning.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// printable replaces by spaces what would not show on a terminal, or change how
// the rest shows.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
