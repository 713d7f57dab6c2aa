package constraint

// The limits of constraints.
const (
	// maxQuantityLength bounds the text of a value. Exponents have at most three digits:
	// otherwise a few bytes could stand for an extremely large number.
	maxQuantityLength = 64
	// maxSteps bounds the length of a place.
	maxSteps = 64
	// maxPattern bounds the length of a regular expression, in bytes.
	maxPattern = 1024
	// maxPatternCost bounds the total cost of the patterns of a constraint: that of 64
	// plain ones of maximum length.
	maxPatternCost = 64 * maxPattern
	// maxValues is the number of values that a message names.
	maxValues = 3
)
