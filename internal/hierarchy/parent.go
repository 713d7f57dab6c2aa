package hierarchy

import "slices"

// ParentPorts returns the ports that the route's references to a parent name,
// each once; 0 stands for all, and then for the others, too.
func (r *Route) ParentPorts(kind, namespace, name string) []int32 {
	var out []int32
	for _, p := range r.Parents {
		switch {
		case !p.Is(kind, namespace, name) || slices.Contains(out, p.Port):
		case p.Port == 0:
			return []int32{0}
		default:
			out = append(out, p.Port)
		}
	}
	return out
}

// Remember returns what was made of the route under a key, making it the first
// time.
func (r *Route) Remember(key any, make func() any) any {
	if v, ok := r.made.Load(key); ok {
		return v
	}
	v, _ := r.made.LoadOrStore(key, make())
	return v
}
