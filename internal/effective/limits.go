package effective

// The limits of a walk: what is kept, and what messages name.
const (
	// maxLinear is the number of entries up to which a linear search is faster than a map.
	maxLinear = 16
	// maxShapes is more than the policy kinds of a cluster.
	maxShapes = 128
	// maxMemoWeight is the weight of a generation of the memo, in parts of results: some
	// 25,000 small results, or fewer large ones, so that a policy with two thousand rules
	// on every route does not exhaust the memory. Two generations take about 60 MB.
	maxMemoWeight = 1 << 19
	// maxComparisonWeight is the weight that one comparison may add to a generation with
	// results after a change. They are rarely needed again: a policy that is stored is
	// decoded again, and has new results. A change of a gateway with ten thousand routes
	// must not evict the results that others need.
	maxComparisonWeight = maxMemoWeight / 8
	// maxParents is the number of parents of a route that a reason names.
	maxParents = 3
	// maxSections is the number of listeners or ports that a hint lists.
	maxSections = 8
	// maxUnread is the number of gateways and Services that are named because policies have no
	// effect there.
	maxUnread = 3
	// maxLocalMemo bounds the memo of a walk. It serves paths that are close together.
	maxLocalMemo = 256
)
