package gateway

import "slices"

// PortsOf returns the ports by which the route is under a service, each once; 0
// stands for all, and then for the others, too. A reference to a port that the
// service lacks, by number or by sectionName, leads nowhere.
func (r *Route) PortsOf(s *Service) []int32 {
	var out []int32
	for _, p := range r.Parents {
		port := p.Port
		if p.Section != "" {
			if port = s.Port(p.Section); port == 0 || p.Port != 0 && p.Port != port {
				continue
			}
		}
		switch {
		case !p.Is(KindService, s.Namespace, s.Name) || slices.Contains(out, port):
		case port == 0:
			return []int32{0}
		case s.HasPort(port):
			out = append(out, port)
		}
	}
	return out
}

// Memoize returns what was made of the route under a key, making it the first
// time.
func (r *Route) Memoize(key any, make func() any) any {
	if v, ok := r.made.Load(key); ok {
		return v
	}
	v, _ := r.made.LoadOrStore(key, make())
	return v
}
