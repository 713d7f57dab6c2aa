package ratelimit

import "strings"

// nearest returns the word that this one is a slip of; "" if it is of none.
// The first of several that are as near wins.
func closestWord(word string, of []string) string {
	meant, least := "", 0
	for _, candidate := range of {
		if d, ok := typoDistance(word, candidate); ok && (meant == "" || d < least) {
			meant, least = candidate, d
		}
	}
	return meant
}

// slip counts the letters by which a word is not another, and tells whether they
// are so few that the other may be meant: one in three, and two in all. Case
// alone counts nothing.
func typoDistance(word, of string) (int, bool) {
	longer := max(len(word), len(of))
	if longer-min(len(word), len(of)) > 2 {
		return 0, false
	}
	d := editDistance(strings.ToLower(word), strings.ToLower(of))
	return d, d <= min(2, longer/3)
}

// distance is how many letters have to be added, dropped, changed or swapped with
// their neighbour to make one word of the other.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
