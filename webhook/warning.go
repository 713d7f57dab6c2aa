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
	warningLength = guard.WarningLength
	warningCount  = 10
	warningTotal  = 4096
)

// warnings returns the warnings for denials that do not deny, with all that a denial says,
// and for other findings, one line each: those of at most warningCount findings, and then
// the number of the remaining ones.
func warnings(denials, found []guard.Finding) []string {
	var lines [][]string
	for _, f := range guard.OmitRepeated(denials) {
		lines = append(lines, split(oneLine(wouldBeDenied+string(f.Code)+": "+f.Message())))
	}
	for _, f := range guard.OmitRepeated(found) {
		lines = append(lines, []string{warning(f)})
	}
	var out []string
	total := 0
	for i, of := range lines {
		for _, line := range of {
			total += len([]rune(line))
		}
		if i >= warningCount || total > warningTotal {
			return append(out, fmt.Sprintf("and %d more; to list all, run kubectl overrule check -f", len(lines)-i))
		}
		out = append(out, of...)
	}
	return out
}

// wouldBeDenied begins the warnings about a denial that does not deny.
const wouldBeDenied = "would be denied: "

// split splits a line that is too long for one warning, at spaces where it has any.
func split(line string) []string {
	const more = " …"
	var out []string
	for !fits(line) {
		runes := []rune(line)
		end := warningLength - len([]rune(more))
		if space := strings.LastIndexByte(string(runes[:end]), ' '); space > len(more) {
			end = len([]rune(string(runes[:end])[:space]))
		}
		out = append(out, string(runes[:end])+more)
		line = "… " + strings.TrimSpace(string(runes[end:]))
	}
	return append(out, line)
}

// warning fits a finding into one line. If it is too long, it drops the request first, then
// the advice, then details, then the groups of kinds, and then shortens names.
func warning(f guard.Finding) string {
	line := oneLine(f.Message())
	if f.Request = ""; !fits(line) {
		line = oneLine(f.Message())
	}
	if !fits(line) {
		line = oneLine(f.What)
	}
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
