package effective

// orderedSet is a set in insertion order.
type orderedSet[T comparable] struct {
	list []T
	has  map[T]bool
}

func (o *orderedSet[T]) add(v T) {
	if o.has[v] {
		return
	}
	if o.has == nil {
		o.has = make(map[T]bool)
	}
	o.has[v] = true
	o.list = append(o.list, v)
}
