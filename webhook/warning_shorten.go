package webhook

import (
	"regexp"
	"strings"
)

// kindAndGroup matches a kind with its group.
var kindAndGroup = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]*)\.([a-z0-9-]+(?:\.[a-z0-9-]+)+)`)

// withoutGroups removes the groups of kinds, unless two kinds differ in their group
// alone.
func withoutGroups(line string) string {
	groups := make(map[string]string)
	ambiguous := make(map[string]bool)
	for _, m := range kindAndGroup.FindAllStringSubmatch(line, -1) {
		if other, ok := groups[m[1]]; ok && other != m[2] {
			ambiguous[m[1]] = true
		}
		groups[m[1]] = m[2]
	}
	return kindAndGroup.ReplaceAllStringFunc(line, func(match string) string {
		if kind, _, _ := strings.Cut(match, "."); !ambiguous[kind] {
			return kind
		}
		return match
	})
}

// shortenWords shortens words that are longer than longest. It removes first what a
// word has in common with the word that is most similar, so that the two remain
// distinct.
func shortenWords(line string, longest int) string {
	words := strings.Split(line, " ")
	runes := make([][]rune, len(words))
	for i, w := range words {
		runes[i] = []rune(w)
	}
	for i, w := range runes {
		if len(w) > longest {
			head, tail := mostSimilar(runes, i)
			words[i] = shorten(w, head, tail, longest)
		}
	}
	return strings.Join(words, " ")
}

// mostSimilar returns the number of runes that the i-th word has in common, at its
// head and at its tail, with the most similar other word: 0 if less than half of either
// is.
func mostSimilar(words [][]rune, i int) (head, tail int) {
	w := words[i]
	for _, o := range words {
		h, t := common(w, o)
		different := h < len(w) || h < len(o)
		if different && 2*(h+t) >= max(len(w), len(o)) && h+t > head+tail {
			head, tail = h, t
		}
	}
	return head, tail
}

// common returns the number of runes that two words share at their head, and of the
// rest at their tail.
func common(a, b []rune) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// shorten cuts a word to a length, in its middle; or, if it shares a head and a tail
// with another word, around what is between them.
func shorten(w []rune, head, tail, longest int) string {
	own := len(w) - head - tail
	room := longest - own - 2 // besides the part between them, and one ellipsis for each cut
	if head+tail == 0 || own == 0 || room < 2 {
		half := (longest - 1) / 2
		return string(w[:longest-1-half]) + "…" + string(w[len(w)-half:])
	}
	after := min(tail, room/2)
	before := min(head, room-after)
	after = min(tail, room-before)
	return string(w[:before]) + ellipsis(head-before) + string(w[head:len(w)-tail]) + ellipsis(tail-after) + string(w[len(w)-after:])
}

// ellipsis stands for runes that were cut.
func ellipsis(cut int) string {
	if cut == 0 {
		return ""
	}
	return "…"
}
