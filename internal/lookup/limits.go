package lookup

import "encoding/json"

// Sizes of the parts of an answer in bytes of JSON. With its metadata, its question and
// what the API server adds, an answer stays below the 1.5 MiB of an object in etcd.
const (
	maxItemBytes        = 384 << 10
	maxExplanationBytes = 384 << 10
	maxOutcomeBytes     = 160 << 10
	maxReachBytes       = 96 << 10
	maxRequestBytes     = 64 << 10
)

// maxOutcomes is the number of policies whose outcome is computed for a limited answer.
const maxOutcomes = 100

// limit limits the size of a list: the number of items, and their size as JSON; 0 for no
// limit.
type limit struct{ items, bytes int }

// fits reports whether an item fits after a number of others, and subtracts its size.
func (l *limit) fits(before int, item any) bool {
	if l.items > 0 && before >= l.items {
		return false
	}
	if l.bytes == 0 {
		return true
	}
	data, err := json.Marshal(item)
	if err != nil || len(data) >= l.bytes {
		return false
	}
	l.bytes -= len(data) + 1 // the comma
	return true
}

// within returns the items that fit within a limit, and how many do not.
func within[T any](limit limit, items []T) (fitting []T, left int) {
	for _, item := range items {
		if limit.fits(0, item) {
			fitting = append(fitting, item)
		} else {
			left++
		}
	}
	return fitting, left
}
