package limits

// The limits of what is kept and reported.
const (
	// maxFindings is how many findings of one group are reported one by one.
	maxFindings = 20
	// maxMatches is how many matches are named in one finding.
	maxMatches = 3
	// maxSampledMatches is about how many matches of all routes the nearest is looked up
	// in.
	maxSampledMatches = 1024
	// maxRoutes is how many routes are counted each once; of more, those at several roots
	// count at each.
	maxRoutes = 64
	// maxWidened is how many matches are kept: few are reported at all.
	maxWidened = 10_000
)
