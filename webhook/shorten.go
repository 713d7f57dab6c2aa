package webhook

import (
	"regexp"
	"strings"
)

// kindAndGroup is a kind that is written with its group.
var kindAndGroup = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]*)\.([a-z0-9-]+(?:\.[a-z0-9-]+)+)`)

// withoutGroups leaves out the groups of kinds, but for those that tell two kinds
// apart.
func withoutGroups(line string) string {
	groups := make(map[string]string)
	apart := make(map[string]bool)
	for _, m := range kindAndGroup.FindAllStringSubmatch(line, -1) {
		if other, ok := groups[m[1]]; ok && other != m[2] {
			apart[m[1]] = true
		}
		groups[m[1]] = m[2]
	}
	return kindAndGroup.ReplaceAllStringFunc(line, func(match string) string {
		if kind, _, _ := strings.Cut(match, "."); !apart[kind] {
			return kind
		}
		return match
	})
}

// shortenWords shortens words that are longer than longest. What a word has in
// common with the one most like it goes first, so that a reader can still tell them
// apart.
func shortenWords(line string, longest int) string {
	words := strings.Split(line, " ")
	runes := make([][]rune, len(words))
	for i, w := range words {
		runes[i] = []rune(w)
	}
	for i, w := range runes {
		if len(w) > longest {
			head, tail := mostAlike(runes, i)
			words[i] = shorten(w, head, tail, longest)
		}
	}
	return strings.Join(words, " ")
}

// mostAlike returns how many runes the i-th word has in common, at its head and at
// its tail, with the other word that is most like it: both 0 if less than half of
// either is.
func mostAlike(words [][]rune, i int) (head, tail int) {
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

// common returns how many runes two words share at their head, and behind it at
// their tail.
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

// shorten cuts a word to a length, in its middle; or, where it shares a head and a
// tail with another one, beside what is between them.
func shorten(w []rune, head, tail, longest int) string {
	own := len(w) - head - tail
	room := longest - own - 2 // beside what is its own, and a dot for each cut
	if head+tail == 0 || own == 0 || room < 2 {
		half := (longest - 1) / 2
		return string(w[:longest-1-half]) + "…" + string(w[len(w)-half:])
	}
	after := min(tail, room/2)
	before := min(head, room-after)
	after = min(tail, room-before)
	return string(w[:before]) + dots(head-before) + string(w[head:len(w)-tail]) + dots(tail-after) + string(w[len(w)-after:])
}

// dots stands for what was cut.
func dots(cut int) string {
	if cut == 0 {
		return ""
	}
	return "…"
}
