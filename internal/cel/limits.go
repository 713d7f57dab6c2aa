package cel

// The limits of expressions. One at all of these compiles in a few milliseconds and
// evaluates in a few tens of milliseconds.
const (
	// Limit is the maximum cost of an evaluation, in cel-go's units.
	Limit = 10_000
	// MaxLength is the maximum length of an expression, in bytes.
	MaxLength = 4096

	maxNesting = 100
	maxNodes   = 10_000
	// maxPattern is the maximum length of a regular expression, in bytes.
	maxPattern = 1024

	// maxCached is the number of expressions, and of regular expressions, that are cached.
	maxCached = 512
	// maxCachedAnswers bounds the cache of answers. An entry takes some 250 bytes.
	maxCachedAnswers = 1 << 15
	// minCachedCost is the cost of an evaluation from which on the answers of a condition
	// are cached: computing the key of an answer is cheaper than evaluating again.
	minCachedCost = 100
	// bytesPerUnit is the number of bytes of a spec that are hashed in the time of one
	// unit of cost.
	bytesPerUnit = 100
)
