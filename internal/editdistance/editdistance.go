// Package editdistance finds the word that is meant by a misspelled one.
package editdistance

import "strings"

// Closest returns the word that is most likely meant by a misspelled one, "" if
// none is close. Of several with the same distance it returns the first.
func Closest(word string, of []string) string {
	closest, least := "", 0
	for _, candidate := range of {
		if d, ok := Typo(word, candidate); ok && (closest == "" || d < least) {
			closest, least = candidate, d
		}
	}
	return closest
}

// Typo returns the edit distance of two words, regardless of case. ok reports
// whether it is small enough for a typo: at most two, and one third of the letters.
func Typo(word, of string) (d int, ok bool) {
	longer := max(len(word), len(of))
	if longer-min(len(word), len(of)) > 2 {
		return 0, false
	}
	d = Between(strings.ToLower(word), strings.ToLower(of))
	return d, d <= min(2, longer/3)
}

// Between returns how many insertions, deletions, substitutions and
// transpositions of neighbours change one word into the other.
func Between(a, b string) int {
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
