package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// zeroWidthSpace separates a character from the next one, invisibly.
const zeroWidthSpace = "\u200b"

// markup are the characters that Markdown and HTML can read as markup, within a line.
const markup = "&<>`*_[]|\\~$#@"

// Some sequences have a meaning on GitHub and GitLab in the text of a page, after Markdown
// and entities are read. Their first group is separated from what follows. An address and a
// mention, which can be part of one, are links in fixed width as well; references to issues
// and emoji are not.
var (
	links      = regexp.MustCompile(`^(?:((?i)://|www\.)|(@)[\w\[-])`)
	references = regexp.MustCompile(`^(?i:([#!$&%~^]|GH-)\d|(:)[\w+-]+:)`)
)

// text returns a text as Markdown, and as HTML, that shows it as it is: no markup, link,
// mention, reference or emoji. A line break is shown as such, also in the cell of a table.
// Control characters are replaced.
func text(s string) string { return escape(s, "<br>", true) }

// code returns a text as Markdown and HTML in a fixed-width font, on one line. GitHub and
// GitLab do not look for references in it, so it can be copied as it is.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "<code>" + escape(s, " ", false) + "</code>"
}

func escape(s, lineBreak string, separate bool) string {
	var out strings.Builder
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for len(s) > 0 {
		if prefix := separated(s, separate); prefix > 0 {
			for _, r := range s[:prefix] {
				fmt.Fprintf(&out, "&#%d;", r)
			}
			out.WriteString(zeroWidthSpace)
			s = s[prefix:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		out.WriteString(escaped(r, lineBreak))
		s = s[size:]
	}
	return out.String()
}

// separated returns the length of what a text starts with and has to be separated from
// what follows; 0 for nothing.
func separated(s string, withReferences bool) int {
	if !strings.Contains("@#!$&%~^:gGwW", s[:1]) {
		return 0
	}
	head := s[:min(len(s), 100)]
	if m := links.FindStringSubmatch(head); m != nil {
		return len(m[1]) + len(m[2])
	}
	if m := references.FindStringSubmatch(head); m != nil && withReferences {
		return len(m[1]) + len(m[2])
	}
	return 0
}

func escaped(r rune, lineBreak string) string {
	switch {
	case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
		return lineBreak
	case r == '\t':
		return " "
	case isHidden(r):
		return string(utf8.RuneError)
	case strings.ContainsRune(markup, r):
		return fmt.Sprintf("&#%d;", r)
	}
	return string(r)
}

// fence returns a block of code. Its fence is longer than any in the content.
func fence(language, content string) string {
	content = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && isHidden(r) {
			return utf8.RuneError
		}
		return r
	}, content)
	marks := "```"
	for strings.Contains(content, marks) {
		marks += "`"
	}
	return marks + language + "\n" + strings.TrimSuffix(content, "\n") + "\n" + marks + "\n"
}

// isHidden reports whether a character is not shown, or changes how others are.
func isHidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
